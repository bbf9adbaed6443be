"""Refusals of the API as exceptions."""

from typing import TypeVar

from .models.problem import Problem

Answer = TypeVar("Answer")


class ProblemError(Exception):
    """A refusal (RFC 9457). `code` is stable; `problem` has the rest."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.code}: {problem.detail} (request {problem.request_id})")
        self.problem = problem
        self.code = problem.code


def unwrap(answer: Answer | Problem | None) -> Answer:
    """Return the answer of a call. Raise ProblemError for a refusal, RuntimeError for an answer that is not documented."""
    if isinstance(answer, Problem):
        raise ProblemError(answer)
    if answer is None:
        raise RuntimeError("the service answered with a status or a body that openapi.json does not describe")
    return answer
