package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"testing"
)

// TestLiveBuffersAreCheap: a program may hold hundreds of thousands of buffers, each with an entry of the shim's and of the policy's.
func TestLiveBuffersAreCheap(t *testing.T) {
	live := func(words ...string) float64 {
		r := run(t, command{args: append(words, testProgram("callcost"), "2000")})
		var figures struct {
			Live float64 `json:"live_bytes"`
		}
		line, _, _ := bytes.Cut(r.stderr, []byte("\n"))
		if err := json.Unmarshal(line, &figures); err != nil {
			t.Errorf("%v: %v: %s", words, err, r.stderr)
		}
		return figures.Live
	}
	bare := live()
	for policy, most := range map[string]float64{"none": 125, "futhark": 215} {
		retry(t, func() string {
			if more := live(gpumemtop(), "--headless", "--policy", policy) - bare; more > most {
				return fmt.Sprintf("under %s a live buffer costs %.0f bytes more than bare, want %.0f at most", policy, more, most)
			}
			return ""
		})
	}
}

// TestNoTemplateEngineIsLinked: templates call methods by name, so the linker would keep every method of every type, a sixth of the
// program, and each start would wait for its pages. Cobra's SetVersionTemplate and its like link one, too.
func TestNoTemplateEngineIsLinked(t *testing.T) {
	f, err := elf.Open(gpumemtop())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	main := false
	for _, s := range symbols {
		main = main || s.Name == "main.main"
		if s.Name == "text/template.(*Template).Execute" {
			t.Errorf("%s is linked", s.Name)
		}
	}
	if !main {
		t.Error("the program has no names of functions")
	}
}
