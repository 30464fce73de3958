"""A check in addition to those of schemathesis: no answer may have any of these words."""

import os

import schemathesis

FORBIDDEN = [word for word in os.environ["TRIWIRE_FORBIDDEN"].split("\n") if word]


@schemathesis.check
def nothing_of_others(ctx, response, case):
    text = response.content.decode("utf-8", "replace")
    for word in FORBIDDEN:
        assert word not in text, f"the answer tells {word}"
