"""A column that a stage promises to write."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Dtype = Literal["int64", "int32", "uint8", "float32", "float64", "bool", "string", "timestamp"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, declared before it is computed.

    The declaration is the single source of the Parquet schema, the range checks, the descriptions in the UI and
    the catalogue in the docs.

    Attributes:
        name: Column name in the Parquet file.
        dtype: One of `Dtype`; `timestamp` is Datetime(us, UTC).
        unit: Unit of the values, for example `s`; empty when there is none.
        meaning: What a value says, and what stands for "missing", in one sentence.
        minimum: Smallest value allowed, or None.
        maximum: Largest value allowed, or None.
        nullable: Whether a null may occur (extra columns that are declared optional).
        initial: For carried state: the value of a user without any past.
    """

    name: str
    dtype: Dtype
    unit: str = ""
    meaning: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    initial: float | bool | None = None

    def described(self) -> dict[str, Any]:
        """The entry of this column in a manifest: name, type, unit and meaning."""
        entry = asdict(self)
        return {"name": entry["name"], "type": entry["dtype"], "unit": entry["unit"], "meaning": entry["meaning"]}
