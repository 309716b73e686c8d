"""`[source]`: where the raw files are, and how each format is read."""

import re
from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipeline.config.settings import DATE_FIELD, RawPath, Settings, fill_date

BLANKS = "whitespace"  # as a separator: runs of blanks and tabs
Format = Literal["csv", "fixed_width", "regex", "ndjson", "json", "parquet", "arrow"]
Compression = Literal["none", "gzip", "bz2", "zstd", "xz"]


def _named_groups(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if not groups:
        raise ValueError("expected named groups such as (?P<user>[^ ]+), which become the columns")
    return pattern


Pattern = Annotated[str, AfterValidator(_named_groups)]


class TextFormat(Settings):
    """What all formats of plain text lines have in common."""

    null_values: tuple[str, ...] = ()
    comment: str | None = Field(default=None, min_length=1)
    encoding: str = "utf-8"

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            raise ValueError(f"encoding '{encoding}' is not known") from None
        return encoding

    @field_validator("comment")
    @classmethod
    def _within_line(cls, comment: str | None) -> str | None:
        if comment is not None and re.search(r"[\r\n]", comment):
            raise ValueError("expected the text that a comment line begins with")
        return comment


class Csv(TextFormat):
    """`[source.csv]`: how the text of a CSV file is cut into cells."""

    separator: str = Field(default=",", min_length=1)
    has_header: bool = True
    typed_header: bool = False
    columns: tuple[str, ...] | None = None
    quote_char: str = Field(default='"', max_length=1)

    @model_validator(mode="after")
    def _named(self) -> "Csv":
        if not self.has_header and not self.columns:
            raise ValueError("has_header = false needs columns = [...], the names of the columns in file order")
        if self.typed_header and not self.has_header:
            raise ValueError("typed_header needs a header")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError("columns holds a name twice")
        if any(re.search(r"[\r\n]", text) for text in (self.separator, self.quote_char)):
            raise ValueError("separator and quote_char hold no line ends")
        if self.separator == self.quote_char:
            raise ValueError("separator and quote_char have to differ")
        if self.separator == BLANKS and self.quote_char:
            raise ValueError('separator = "whitespace" needs quote_char = "", since quotes are plain text then')
        if len(self.separator) > 1 and self.quote_char:
            raise ValueError(
                'a separator of several characters needs quote_char = "", since quotes are plain text then'
            )
        return self


class FixedWidth(TextFormat):
    """`[source.fixed_width]`: columns by their first and last position in the line, counted in characters from 1."""

    columns: dict[str, tuple[int, int]] = Field(min_length=1)
    has_header: bool = False

    @field_validator("columns")
    @classmethod
    def _ordered(cls, columns: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        for name, (first, last) in columns.items():
            if not 1 <= first <= last:
                raise ValueError(f"column '{name}' goes from {first} to {last}; expected 1 <= first <= last")
        return columns


class Regex(TextFormat):
    """`[source.regex]`: every line matches a pattern whose named groups are the columns."""

    pattern: Pattern


class Json(Settings):
    """`[source.json]`: where in a JSON document the list of records is."""

    records: str = ""

    @field_validator("records")
    @classmethod
    def _path(cls, records: str) -> str:
        if records and "" in records.split("."):
            raise ValueError("expected keys with points between, such as data.events")
        return records


class Explode(Settings):
    """`[source.explode]`: a column that holds a list; each of its elements becomes a record of its own."""

    column: str = Field(min_length=1)
    separator: str | None = Field(default=None, min_length=1)
    pattern: Pattern | None = None


class Source(Settings):
    """`[source]`: where the raw files of a day are and how they are read."""

    path: RawPath
    neighbours: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (0, 0)
    ready: RawPath | None = None
    table: Literal["delta", "iceberg"] | None = None
    format: Format | None = None
    compression: Compression | None = None
    hive: bool = False
    missing_day: Literal["fail", "empty"] = "fail"
    csv: Csv = Csv()
    fixed_width: FixedWidth | None = None
    regex: Regex | None = None
    json_: Json = Field(default=Json(), alias="json")
    explode: Explode | None = None

    @property
    def dated(self) -> bool:
        """Whether the path names a day, so that every day has files of its own."""
        return DATE_FIELD.search(self.path) is not None

    @model_validator(mode="after")
    def _consistent(self) -> "Source":
        unknown = re.search(r"\{(?!date[:}])[^{}]*\}", self.path)
        if unknown is not None:
            raise ValueError(f"path holds {unknown[0]}; the only field is {{date}}, or {{date:%Y%m%d}}")
        names = {fill_date(self.path, date(2024, 2, 1) + timedelta(days=offset)) for offset in range(366)}
        if self.dated and len(names) < 366:
            raise ValueError(
                "the date in path has to tell every day apart; leave {date} out for files that hold many days"
            )
        if not self.dated and self.neighbours != (0, 0):
            raise ValueError("neighbours needs {date} in path")
        return self

    @model_validator(mode="after")
    def _one_table(self) -> "Source":
        if self.table is not None and re.search(r"[*?{]", self.path) is not None:
            raise ValueError(f'table = "{self.table}" needs one table as path, without {{date}}, * and ?')
        if self.table is not None and self.format not in ("parquet", None):
            raise ValueError(f'the files of a table = "{self.table}" are Parquet; leave format out')
        return self

    @model_validator(mode="after")
    def _declared_format(self) -> "Source":
        if self.format == "fixed_width" and self.fixed_width is None:
            raise ValueError(
                'format = "fixed_width" needs [source.fixed_width] columns = { name = [first, last], ... }'
            )
        if self.format == "regex" and self.regex is None:
            raise ValueError('format = "regex" needs [source.regex] pattern = "..."')
        for table, format_ in (("fixed_width", "fixed_width"), ("regex", "regex"), ("json_", "json")):
            if table in self.model_fields_set and self.format != format_:
                raise ValueError(f'[source.{format_}] needs format = "{format_}"')
        if "csv" in self.model_fields_set and self.format not in ("csv", None):
            raise ValueError(f'[source.csv] needs format = "csv", found "{self.format}"')
        if self.format in ("parquet", "arrow") and self.compression not in ("none", None):
            raise ValueError(f'format = "{self.format}" is packed inside; leave compression out')
        return self
