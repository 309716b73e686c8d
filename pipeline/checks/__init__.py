"""The oracle and the other proofs, as functions that return findings; and `publish`."""

from pipeline.checks.findings import Finding, Proof, ProofFailed
from pipeline.checks.publish import Published, prove_again, prove_days_again, publish, sample_of_days
from pipeline.checks.raw_oracle import days_at_once
from pipeline.checks.raw_sample import RawSample

__all__ = [
    "Finding",
    "Proof",
    "ProofFailed",
    "Published",
    "RawSample",
    "days_at_once",
    "prove_again",
    "prove_days_again",
    "publish",
    "sample_of_days",
]
