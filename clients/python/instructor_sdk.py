"""instructor: structured answers in every mode that fits the wire."""

import anthropic
import instructor
import openai
from pydantic import BaseModel

from suite import BASE, CUTS, IMAGE, KEY, ONCE, ORIGIN, QUESTION, WIRE, model, raises, run


class Weather(BaseModel):
    city: str
    rainy: bool


MODES = {
    "messages": (instructor.Mode.ANTHROPIC_TOOLS,),
    "chat": (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA),
    "responses": (instructor.Mode.RESPONSES_TOOLS,),
}[WIRE]


def client(mode=MODES[0]):
    if WIRE == "messages":
        return instructor.from_anthropic(anthropic.Anthropic(base_url=ORIGIN, api_key=KEY, timeout=30), mode=mode)
    return instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=KEY, timeout=30), mode=mode)


def ask(content=QUESTION, kind="large"):
    more = {"max_tokens": 1000} if WIRE == "messages" else {}
    return {"model": model(kind), "messages": [{"role": "user", "content": content}], "response_model": Weather,
            "max_retries": 0, **more}


def structured(mode):
    def case():
        said = client(mode).create(**ask())
        assert said.city == "sample city", said
    return case


def partial():
    said = None
    for said in client().create_partial(**ask()):
        pass
    assert said.city == "sample city", said


def image():
    picture = instructor.Image.from_base64(f"data:image/png;base64,{IMAGE}")
    said = client().create(**ask(["What is it?", picture]))
    assert said.city == "sample city", said


def error():
    raises(Exception, lambda: client().create(**{**ask(), "model": "nobody"}))


def cut(kind):
    def case():
        raises(Exception, lambda: list(client().create_partial(**ask(kind=kind))))
    return case


NO_TEXT = "not tried, because the SDK requests only structured answers"
run({
    "text": NO_TEXT, "tools": NO_TEXT, "stream": partial,
    **{f"structured, {mode.name}": structured(mode) for mode in MODES},
    "image": image if WIRE != "responses" else "not tried, because on this wire the SDK sends images in its own format",
    "reasoning": NO_TEXT, "error": error,
    "abort": "the SDK offers no stream that a client could abort",
    # On responses, instructor ignores how a stream ends. After a cut text, it also has no call whose parsing could
    # fail.
    **{name: cut(kind) for name, kind in CUTS.items() if (WIRE, name) != ("responses", "cut in text")},
})
