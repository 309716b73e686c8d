"""How object stores are reached: by what the environment says, and in words when they do not answer."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from pipeline.contracts import PipelineError

CONNECT_S, RETRY_S = 5, 10  # a store that is not there gives a sentence within half a minute

# What is read of the environment: who we are, and where the store is if not at its usual place.
VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
           "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SKIP_SIGNATURE"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE", "STORAGE_EMULATOR_HOST"),
    "az": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY",
           "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
}  # fmt: skip
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_SKIP_SIGNATURE=true where all may read",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS; GOOGLE_SKIP_SIGNATURE=true where all may read",
    "az": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}
ENDPOINTS = {"s3": "AWS_ENDPOINT_URL and AWS_REGION", "gs": "STORAGE_EMULATOR_HOST", "az": "AZURE_STORAGE_ACCOUNT_NAME"}
DENIED = re.compile(
    r"access.?denied|access token|AuthenticationException|AuthenticationFailed|AuthorizationFailure|forbidden|"
    r"InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|MISSING_AUTHENTICATION_TOKEN|"
    r"PERMISSION_DENIED|AuthorizationPermissionMismatch|SIGNATURE_DOES_NOT_MATCH|UNAUTHENTICATED|UnrecognizedClient|"
    r"HTTP status 40[13]|Expired.?Token",
    re.IGNORECASE,
)
UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|curlCode|CURL error|resolve host|get a new connection|UNAVAILABLE|timed? ?out", re.IGNORECASE
)


def open_store(scheme: str, bucket: str) -> fs.FileSystem:
    """The store of a bucket, with the credentials and the endpoint that its usual environment variables give.

    Args:
        scheme: s3, gs or az.
        bucket: Of which the region is asked for when the environment does not give it.
    """
    known = tuple((name, os.environ[name]) for name in VARIABLES[scheme] if os.environ.get(name))
    return _open_with(scheme, bucket, known)


def s3_place(bucket: str) -> tuple[str | None, str]:
    """Endpoint and region of a bucket, as the environment says; without either of them the region is asked for."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint is None and not region:
        region = fs.resolve_s3_region(bucket)
    return endpoint, region or "us-east-1"


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Words what a store answers when it does not give what was asked for.

    Raises:
        PipelineError: One sentence with the URL, the answer and what to do.
    """
    try:
        yield
    except FileNotFoundError:
        raise PipelineError(
            f"{url}: there is no such object any more; restore it, or run the day again without it"
        ) from None
    except (OSError, pa.ArrowException) as error:
        reason, scheme = " ".join(str(error).split())[:300], url.partition("://")[0]
        if DENIED.search(reason):
            what, do = "gives no access", f"give credentials that may list and read it ({CREDENTIALS[scheme]})"
        elif UNREACHABLE.search(reason):
            what, do = "cannot be reached", f"check the network and {ENDPOINTS[scheme]}, then run the day again"
        else:
            what, do = (
                "does not answer as expected",
                f"check [source] path and {ENDPOINTS[scheme]}, or run the day again",
            )
        raise PipelineError(f"{url}: the object store {what} ({reason}); {do}") from None


@lru_cache(maxsize=16)
def _open_with(scheme: str, bucket: str, known: tuple[tuple[str, str], ...]) -> fs.FileSystem:
    given = dict(known)
    if scheme == "s3":
        endpoint, region = s3_place(bucket)
        return fs.S3FileSystem(
            anonymous=given.get("AWS_SKIP_SIGNATURE") == "true",
            region=region,
            endpoint_override=endpoint,
            connect_timeout=CONNECT_S,
            request_timeout=RETRY_S,
        )
    if scheme == "gs":
        emulator = given.get("STORAGE_EMULATOR_HOST")
        return fs.GcsFileSystem(
            anonymous=emulator is not None or given.get("GOOGLE_SKIP_SIGNATURE") == "true",
            endpoint_override=emulator and emulator.rpartition("://")[2],
            scheme=(emulator.rpartition("://")[0] or "http") if emulator else None,
            retry_time_limit=timedelta(seconds=RETRY_S),
        )
    return _open_azure(given)


def _open_azure(given: Mapping[str, str]) -> fs.FileSystem:
    account = given.get("AZURE_STORAGE_ACCOUNT_NAME") or given.get("AZURE_STORAGE_ACCOUNT")
    if account is None:
        raise PipelineError("az:// needs the name of the storage account; set AZURE_STORAGE_ACCOUNT_NAME")
    # Without key and token the SDK looks itself for a service principal, a managed identity or a login.
    return fs.AzureFileSystem(
        account,
        account_key=given.get("AZURE_STORAGE_ACCOUNT_KEY") or given.get("AZURE_STORAGE_KEY"),
        sas_token=given.get("AZURE_STORAGE_SAS_TOKEN"),
    )
