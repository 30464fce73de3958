// anthropic-sdk-go: messages.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"triwire.example/clients/suite"
)

var (
	client = anthropic.NewClient(option.WithBaseURL(suite.Origin), option.WithAPIKey(suite.Key))
	ctx    = context.Background()
)

func ask(kind string, blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
	if len(blocks) == 0 {
		blocks = []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(suite.Question)}
	}
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(suite.Model(kind)),
		MaxTokens: 2000,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)},
	}
}

func tools() []anthropic.ToolUnionParam {
	schema := anthropic.ToolInputSchemaParam{Properties: suite.Schema["properties"], Required: []string{"city"}}
	return []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: schema}}}
}

func textOf(message anthropic.Message) string {
	text := ""
	for _, block := range message.Content {
		text += block.Text
	}
	return text
}

func has(asked anthropic.MessageNewParams, parts ...string) error {
	said, err := client.Messages.New(ctx, asked)
	if err != nil {
		return err
	}
	return suite.Has(textOf(*said), parts...)
}

func read(asked anthropic.MessageNewParams) (anthropic.Message, error) {
	stream := client.Messages.NewStreaming(ctx, asked)
	message := anthropic.Message{}
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return message, err
		}
	}
	return message, stream.Err()
}

func main() {
	cases := []suite.Case{
		{"text", func() error { return has(ask("large"), suite.Answer) }},
		{"stream", func() error {
			said, err := read(ask("large"))
			return errors.Join(err, suite.Has(textOf(said), suite.Answer))
		}},
		{"tools", toolsCase},
		{"structured", func() error {
			asked := ask("large")
			asked.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: suite.Schema}
			return has(asked, "sample city")
		}},
		{"image", func() error {
			return has(ask("large", anthropic.NewImageBlockBase64("image/png", suite.Image), anthropic.NewTextBlock("What is it?")), "1 image")
		}},
		{"reasoning", reasoning},
		{"count_tokens", func() error {
			asked := ask("large")
			counted, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: asked.Model, Messages: asked.Messages})
			if err == nil && counted.InputTokens == 0 {
				return errors.New("nothing was counted")
			}
			return err
		}},
		{"error", func() error {
			asked := ask("large")
			asked.Model = "nobody"
			_, err := client.Messages.New(ctx, asked)
			var told *anthropic.Error
			if errors.As(err, &told) && told.StatusCode == 404 {
				return nil
			}
			return fmt.Errorf("it raised %v", err)
		}},
		{"abort", func() error {
			stream := client.Messages.NewStreaming(ctx, ask("slow"))
			for stream.Next() {
				if stream.Current().Type == "content_block_delta" {
					return stream.Close()
				}
			}
			return errors.Join(stream.Err(), errors.New("the stream had no text, so it was not aborted"))
		}},
	}
	for name, kind := range suite.Once {
		cases = append(cases, suite.Case{Name: name, Do: func() error { return has(ask(kind), suite.Recovered) }})
	}
	for name, kind := range suite.Cuts {
		cases = append(cases, suite.Case{Name: name, Do: func() error {
			asked := ask(kind)
			asked.Tools = tools()
			said, err := read(asked)
			if err == nil {
				return fmt.Errorf("no error was reported: %q", textOf(said))
			}
			return nil
		}})
	}
	suite.Run(cases)
}

func toolsCase() error {
	asked := ask("large", anthropic.NewTextBlock(suite.BothCities))
	asked.Tools = tools()
	said, err := client.Messages.New(ctx, asked)
	if err != nil {
		return err
	}
	results := []anthropic.ContentBlockParamUnion{}
	for _, block := range said.Content {
		if block.Type == "tool_use" {
			results = append(results, anthropic.NewToolResultBlock(block.ID, suite.Weather(string(block.Input)), false))
		}
	}
	if len(results) != 2 {
		return fmt.Errorf("%d calls", len(results))
	}
	asked.Messages = append(asked.Messages, said.ToParam(), anthropic.NewUserMessage(results...))
	return has(asked, "sunny in Paris", "sunny in Rome")
}

func reasoning() error {
	asked := ask("large")
	asked.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	said, err := read(asked)
	if err != nil {
		return err
	}
	if len(said.Content) == 0 || said.Content[0].Type != "thinking" {
		return fmt.Errorf("it does not begin with thinking: %q", said.Content)
	}
	asked.Messages = append(asked.Messages, said.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock("And then?")))
	return has(asked, "And then?")
}
