"""The input of every program of this folder, and the function that runs its cases and prints the results.

A case is a function that raises an error if something is wrong, or a text: the reason why the client cannot do it.
clients/run-program.ts sets the variables. There is a model that answers, and one for each way to fail.
"""

import asyncio
import inspect
import json
import os
import sys
import traceback

ORIGIN = os.environ.get("TRIWIRE_URL", "")
BASE = f"{ORIGIN}/v1"
KEY = os.environ.get("TRIWIRE_KEY", "")
WIRE = os.environ.get("TRIWIRE_WIRE", "")
MODEL_WIRE = os.environ.get("TRIWIRE_MODEL_WIRE", "")

QUESTION = "What is the capital of France?"
ANSWER = 'You said: "What is the capital of France?"'
# The simulator makes the tool calls that a prompt names, with these arguments.
BOTH_CITIES = 'call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}'
RECOVERED = "That is the answer."
# A red image of 1 x 1 pixel.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
# The cases that every program has; more are its own.
CASES = ("text", "stream", "tools", "structured", "image", "reasoning", "error", "abort")
ONCE = {"429": "busy", "529": "overloaded", "500": "broken"}
CUTS = {"cut in text": "cut-text", "cut in a call": "cut-call"}


def model(kind="large"):
    """Returns the catalog id of a model, such as large, slow or busy, on the wire of this run."""
    return f"{kind}-{MODEL_WIRE}"


def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def is_in(text, *parts):
    for part in parts:
        assert part in (text or ""), f"{part!r} is not in {text!r}"


def raises(kinds, call):
    """Calls a function that must raise an error of these kinds, and returns the error."""
    try:
        result = call()
    except kinds as error:
        return error
    raise AssertionError(f"nothing was raised: {result!r}")


def run(cases):
    """Runs the cases one after the other, and prints a line for each."""
    asked = sys.argv[1:] or list(cases)
    for name in asked:
        case = cases[name]
        said = {"case": name}
        try:
            if isinstance(case, str):
                said["omitted"] = case
            else:
                result = case()
                if inspect.iscoroutine(result):
                    asyncio.run(result)
        except BaseException as error:  # pylint: disable=broad-except
            if isinstance(error, KeyboardInterrupt):
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            said["failed"] = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"[:600]
        print("CASE " + json.dumps(said), flush=True)
