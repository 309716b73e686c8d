"""What the tables of the dataset file are made of."""

import re
from datetime import date
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

DATE_FIELD = re.compile(r"\{date(?::([^{}]+))?\}")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
OBJECT_STORES = ("s3", "gs", "az")
MEMORY_FACTOR = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip


class Settings(BaseModel):
    """A table of the dataset file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def fill_date(pattern: str, day: date) -> str:
    """A path with the day in the place of `{date}`.

    >>> fill_date("{date:%Y/%m}/{date}.csv", date(2010, 12, 1))
    '2010/12/2010-12-01.csv'
    """
    return DATE_FIELD.sub(lambda field: day.strftime(field[1] or "%Y-%m-%d"), pattern)


def _local_only(path: object) -> object:
    if isinstance(path, str) and "://" in path:
        raise ValueError("object stores are not supported yet; give a path on this machine")
    return path


def is_url(path: str) -> bool:
    """Whether a path of the dataset file lies in an object store.

    >>> is_url("s3://bucket/logs/{date}.csv"), is_url("logs/{date}.csv")
    (True, False)
    """
    return "://" in path


def _local_or_object(path: object) -> object:
    """Refuses a URL of another scheme, and one that names no object in one way only."""
    if not isinstance(path, str) or not is_url(path):
        return path
    scheme, _, place = path.partition("://")
    if scheme not in OBJECT_STORES:
        raise ValueError(f"{scheme}:// is not read; expected s3://, gs:// or az://, or a path on this machine")
    bucket, *parts = place.split("/")
    if not parts or re.search(r"[*?{}]", bucket) is not None:
        raise ValueError(f"expected {scheme}://bucket/folder/file, with the name of the bucket in full")
    if any(part in {"", ".", ".."} for part in (bucket, *parts)):
        raise ValueError("a part of the URL is empty, . or ..; write the key as the store lists it")
    return path


def _day(value: object) -> object:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError("expected a day such as 2010-12-01") from None
    return value


def _bytes(value: object) -> object:
    if isinstance(value, str):
        match = MEMORY.fullmatch(value.strip())
        if match is None:
            raise ValueError("expected an amount such as 2GiB or 500MB")
        return int(float(match[1]) * MEMORY_FACTOR[match[2]])
    return value


Day = Annotated[date, BeforeValidator(_day)]
RawPath = Annotated[str, BeforeValidator(_local_or_object)]
LocalPath = Annotated[str, BeforeValidator(_local_only)]
Memory = Annotated[int, BeforeValidator(_bytes), Field(ge=64 * 2**20)]
