"""openai: chat completions and responses."""

import json

import openai
from pydantic import BaseModel

from suite import (ANSWER, BASE, BOTH_CITIES, CUTS, IMAGE, KEY, ONCE, QUESTION, RECOVERED, WEATHER_SCHEMA, WIRE,
                   is_in, model, raises, run, weather)

client = openai.OpenAI(base_url=BASE, api_key=KEY, timeout=30)
IMAGE_URL = f"data:image/png;base64,{IMAGE}"


class Weather(BaseModel):
    city: str
    rainy: bool


def user(content):
    return [{"role": "user", "content": content}]


def chat_cases():
    create = client.chat.completions.create
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}]

    def ask(content=QUESTION, kind="large", **more):
        return {"model": model(kind), "messages": user(content), **more}

    def text():
        is_in(create(**ask()).choices[0].message.content, ANSWER)

    def stream():
        with client.chat.completions.stream(**ask()) as events:
            is_in(events.get_final_completion().choices[0].message.content, ANSWER)

    async def async_stream():
        async with openai.AsyncOpenAI(base_url=BASE, api_key=KEY) as other:
            pieces = [piece async for piece in await other.chat.completions.create(**ask(stream=True))]
        is_in("".join(p.choices[0].delta.content or "" for p in pieces if p.choices), ANSWER)

    def tools_case():
        said = create(**ask(BOTH_CITIES, tools=tools)).choices[0].message
        assert len(said.tool_calls) == 2
        results = [{"role": "tool", "tool_call_id": call.id, "content": weather(**json.loads(call.function.arguments))}
                   for call in said.tool_calls]
        again = ask(BOTH_CITIES, tools=tools)
        again["messages"] += [said, *results]
        is_in(create(**again).choices[0].message.content, "sunny in Paris", "sunny in Rome")

    def structured():
        parsed = client.chat.completions.parse(**ask(response_format=Weather)).choices[0].message.parsed
        assert parsed == Weather(city="sample city", rainy=True), parsed

    def image():
        content = [{"type": "image_url", "image_url": {"url": IMAGE_URL}}, {"type": "text", "text": "What is it?"}]
        is_in(create(**ask(content)).choices[0].message.content, "1 image")

    def reasoning():
        usage = create(**ask(reasoning_effort="high")).usage
        assert usage.completion_tokens_details.reasoning_tokens > 0

    def abort():
        stream = create(**ask(kind="slow", stream=True))
        for piece in stream:
            if piece.choices and piece.choices[0].delta.content:
                break
        stream.close()

    def once(kind):
        return lambda: is_in(create(**ask(kind=kind)).choices[0].message.content, RECOVERED)

    def cut(kind):
        return lambda: raises(openai.APIError, lambda: list(create(**ask(kind=kind, stream=True, tools=tools))))

    return {
        "text": text, "stream": stream, "async stream": async_stream, "tools": tools_case, "structured": structured,
        "image": image, "reasoning": reasoning,
        "error": lambda: raises(openai.NotFoundError, lambda: create(**{**ask(), "model": "nobody"})),
        "abort": abort,
        **{name: once(kind) for name, kind in ONCE.items()},
        **{name: cut(kind) for name, kind in CUTS.items()},
    }


def responses_cases():
    create = client.responses.create
    tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER_SCHEMA, "strict": True}]

    def ask(content=QUESTION, kind="large", **more):
        return {"model": model(kind), "input": user(content), **more}

    def text():
        is_in(create(**ask()).output_text, ANSWER)

    def stream():
        with client.responses.stream(**ask()) as events:
            is_in(events.get_final_response().output_text, ANSWER)

    async def async_stream():
        async with openai.AsyncOpenAI(base_url=BASE, api_key=KEY) as other:
            events = [event async for event in await other.responses.create(**ask(stream=True))]
        is_in(events[-1].response.output_text, ANSWER)

    def tools_case():
        asked = ask(BOTH_CITIES, tools=tools)
        said = create(**asked).output
        calls = [item for item in said if item.type == "function_call"]
        assert len(calls) == 2
        results = [{"type": "function_call_output", "call_id": call.call_id,
                    "output": weather(**json.loads(call.arguments))} for call in calls]
        is_in(create(**{**asked, "input": [*asked["input"], *said, *results]}).output_text,
              "sunny in Paris", "sunny in Rome")

    def structured():
        parsed = client.responses.parse(**ask(text_format=Weather)).output_parsed
        assert parsed == Weather(city="sample city", rainy=True), parsed

    def image():
        content = [{"type": "input_image", "detail": "auto", "image_url": IMAGE_URL},
                   {"type": "input_text", "text": "What is it?"}]
        is_in(create(**ask(content)).output_text, "1 image")

    def reasoning():
        asked = ask(reasoning={"effort": "high", "summary": "auto"}, include=["reasoning.encrypted_content"])
        said = create(**asked).output
        assert said[0].type == "reasoning", said
        more = [*asked["input"], *said, {"role": "user", "content": "And then?"}]
        is_in(create(**{**asked, "input": more}).output_text, "And then?")

    def abort():
        stream = create(**ask(kind="slow", stream=True))
        for event in stream:
            if event.type == "response.output_text.delta":
                break
        stream.close()

    def once(kind):
        return lambda: is_in(create(**ask(kind=kind)).output_text, RECOVERED)

    def cut(kind):
        def case():
            events = list(create(**ask(kind=kind, stream=True, tools=tools)))
            assert events[-1].type == "response.failed", events[-1].type
            done = [e for e in events if e.type == "response.output_item.done" and e.item.type == "function_call"]
            assert not done, "a call that was cut is reported as done (T24)"
        return case

    return {
        "text": text, "stream": stream, "async stream": async_stream, "tools": tools_case, "structured": structured,
        "image": image, "reasoning": reasoning,
        "error": lambda: raises(openai.NotFoundError, lambda: create(**{**ask(), "model": "nobody"})),
        "abort": abort,
        **{name: once(kind) for name, kind in ONCE.items()},
        **{name: cut(kind) for name, kind in CUTS.items()},
    }


run(chat_cases() if WIRE == "chat" else responses_cases())
