"""All advice about rules in one import: explain, lint, intent, suggest, unused. It decides nothing itself."""

from headrace.security.acl_explain import Cure, Explanation, explain
from headrace.security.acl_intent import Intent, intent
from headrace.security.acl_lint import Finding, Problem, lint
from headrace.security.acl_usage import Access, suggest, unused, without_any_one

__all__ = [
    "Access",
    "Cure",
    "Explanation",
    "Finding",
    "Intent",
    "Problem",
    "explain",
    "intent",
    "lint",
    "suggest",
    "unused",
    "without_any_one",
]
