"""anthropic: messages, its beta paths and its tool runner."""

import anthropic
from anthropic import beta_tool
from pydantic import BaseModel

from suite import (ANSWER, BOTH_CITIES, CUTS, IMAGE, KEY, ONCE, ORIGIN, QUESTION, RECOVERED, WEATHER_SCHEMA, is_in,
                   model, raises, run, weather)

client = anthropic.Anthropic(base_url=ORIGIN, api_key=KEY, timeout=30)
create = client.messages.create
tools = [{"name": "get_weather", "input_schema": WEATHER_SCHEMA}]


class Weather(BaseModel):
    city: str
    rainy: bool


def ask(content=QUESTION, kind="large", **more):
    return {"model": model(kind), "max_tokens": 2000, "messages": [{"role": "user", "content": content}], **more}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def text():
    is_in(text_of(create(**ask())), ANSWER)


def stream():
    with client.messages.stream(**ask()) as events:
        is_in(text_of(events.get_final_message()), ANSWER)


async def async_stream():
    async with anthropic.AsyncAnthropic(base_url=ORIGIN, api_key=KEY) as other:
        async with other.messages.stream(**ask()) as events:
            is_in(text_of(await events.get_final_message()), ANSWER)


def tools_case():
    asked = ask(BOTH_CITIES, tools=tools)
    said = create(**asked)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
               for block in said.content if block.type == "tool_use"]
    assert len(results) == 2
    more = [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
    is_in(text_of(create(**{**asked, "messages": asked["messages"] + more})), "sunny in Paris", "sunny in Rome")


def tool_runner(stream):
    """The SDK's tool runner, unchanged. It first asks for a thread, and expects an error (A1)."""
    def case():
        @beta_tool
        def get_weather(city: str) -> str:
            """Weather of a city.

            Args:
                city: its name
            """
            return weather(city)

        runner = client.beta.messages.tool_runner(**ask(BOTH_CITIES, tools=[get_weather], stream=stream))
        is_in(text_of(runner.until_done()), "sunny in Paris", "sunny in Rome")
    return case


def structured():
    parsed = client.messages.parse(**ask(output_format=Weather)).parsed_output
    assert parsed == Weather(city="sample city", rainy=True), parsed


def image():
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    is_in(text_of(create(**ask([{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]))),
          "1 image")


def reasoning():
    asked = ask(thinking={"type": "enabled", "budget_tokens": 1024})
    with client.messages.stream(**asked) as events:
        said = events.get_final_message()
    assert said.content[0].type == "thinking"
    more = [{"role": "assistant", "content": said.content}, {"role": "user", "content": "And then?"}]
    is_in(text_of(create(**{**asked, "messages": asked["messages"] + more})), "And then?")


def count():
    assert client.messages.count_tokens(model=model(), messages=ask()["messages"]).input_tokens > 0


def abort():
    with client.messages.stream(**ask(kind="slow")) as events:
        for _ in events.text_stream:
            break


def once(kind):
    return lambda: is_in(text_of(create(**ask(kind=kind))), RECOVERED)


def cut(kind):
    def case():
        with client.messages.stream(**ask(kind=kind, tools=tools)) as events:
            events.get_final_message()
    return lambda: raises(anthropic.APIError, case)


run({
    "text": text, "stream": stream, "async stream": async_stream, "tools": tools_case,
    "tool runner": tool_runner(False), "tool runner, streamed": tool_runner(True), "structured": structured,
    "image": image, "reasoning": reasoning, "count_tokens": count,
    "error": lambda: raises(anthropic.NotFoundError, lambda: create(**{**ask(), "model": "nobody"})),
    "abort": abort,
    **{name: once(kind) for name, kind in ONCE.items()},
    **{name: cut(kind) for name, kind in CUTS.items()},
})
