// Package suite has the input of every program of this folder, and prints the results of its cases.
package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Set by clients/run-program.ts.
var (
	Origin    = os.Getenv("TRIWIRE_URL")
	Base      = Origin + "/v1/"
	Key       = os.Getenv("TRIWIRE_KEY")
	Wire      = os.Getenv("TRIWIRE_WIRE")
	modelWire = os.Getenv("TRIWIRE_MODEL_WIRE")
)

const (
	Question = "What is the capital of France?"
	Answer   = `You said: "What is the capital of France?"`
	// The simulator makes the tool calls that a prompt names, with these arguments.
	BothCities = `call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}`
	Recovered  = "That is the answer."
	// A red image of 1 x 1 pixel.
	Image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)

// Once has the models that fail once, and Cuts those that cut their stream, by the name of the failure.
var (
	Once = map[string]string{"429": "busy", "529": "overloaded", "500": "broken"}
	Cuts = map[string]string{"cut in text": "cut-text", "cut in a call": "cut-call"}
)

// Schema is the JSON schema of the arguments of get_weather.
var Schema = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"city": map[string]any{"type": "string"}},
	"required":             []string{"city"},
	"additionalProperties": false,
}

// Model returns the catalog id of a model, such as large, slow or busy, on the wire of this run.
func Model(kind string) string { return kind + "-" + modelWire }

// Weather returns the result of a call of get_weather.
func Weather(arguments string) string {
	var asked struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return err.Error()
	}
	return "sunny in " + asked.City
}

// Has returns an error unless all parts are in the text.
func Has(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
	}
	return nil
}

// Case is one test of a client.
type Case struct {
	Name string
	Do   func() error
}

// Run runs the cases one after the other, and prints a line for each.
func Run(cases []Case) {
	for _, one := range cases {
		said := map[string]string{"case": one.Name}
		if err := one.Do(); err != nil {
			said["failed"] = err.Error()
		}
		line, _ := json.Marshal(said)
		fmt.Println("CASE " + string(line))
	}
}
