"""The oracle and the other proofs, as functions that return findings; and `publish`."""

from pipeline.checks.findings import Finding, Proof, ProofFailed
from pipeline.checks.publish import Published, prove_again, publish

__all__ = ["Finding", "Proof", "ProofFailed", "Published", "prove_again", "publish"]
