# The OpenAI SDK for Python. Any model of the catalog can be named.
#   pip install openai
#   TRIWIRE_KEY=sk-tri-… python examples/openai-python.py
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("TRIWIRE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["TRIWIRE_KEY"],
)
with client.chat.completions.create(
    model=os.environ.get("TRIWIRE_MODEL", "sim-messages"),
    messages=[{"role": "user", "content": "Why is the sky blue?"}],
    stream=True,
) as stream:
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            print(chunk.choices[0].delta.content, end="", flush=True)
print()
