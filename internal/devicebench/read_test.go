package devicebench

import (
	"errors"
	"strings"
	"testing"
)

const twoCards = `{"devices": [
	{"number": 3, "device": "Card A", "platform": "Red", "create": {"a_ns": 2000, "b_ns_per_byte": 0.25, "r2": 1},
	 "release": {"a_ns": 300, "below": {"bytes": 4096, "a_ns": 5}}, "subbuffer_create_ns": 7, "subbuffer_release_ns": 2},
	{"number": 4, "device": "Card B\u001b", "platform": "Blue", "error": "the driver crashed"}]}`

func TestReadDevice(t *testing.T) {
	r, err := ParseResult([]byte(twoCards))
	if err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{"3", "card a"} {
		d, err := r.Device(which)
		if err != nil {
			t.Fatal(err)
		}
		c := d.SteadyCosts()
		if c.Create.CallNS(4) != 2001 || c.Release.CallNS(4096) != 300 || c.Release.CallNS(4095) != 5 || c.Part.CallNS(1<<20) != 9 ||
			c.Touch.CallNS(1) != 0 {
			t.Errorf("%s: %+v", which, c)
		}
	}
	for which, want := range map[string]string{
		"":     "several devices: choose one with --device: 3: Card A (Red), 4: Card B",
		"card": "several devices: choose one with --device: 3: Card A (Red), 4: Card B",
		"0":    "no such device: there are 3: Card A (Red), 4: Card B",
		"4":    "device 4 was not measured: the driver crashed",
	} {
		if _, err := r.Device(which); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v, want %q", which, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "not what gpumemtop probe --format json writes",
		`[1]`:                          "not what gpumemtop probe",
		twoCards + "1":                 "not what gpumemtop probe",
		`{"create": {"a_ns": 1}}`:      "no devices in it: want what gpumemtop probe",
		`{"devices": [{"create": 1}]}`: "not what gpumemtop probe",
		`{"devices": [{"number": 2, "create": {"a_ns": -1}}]}`:                     "the create cost of device 2 is wrong: -1 is among",
		`{"devices": [{"create": {"a_ns": 1}, "release": {"b_ns_per_byte": -1}}]}`: "the release cost of device 0",
		`{"devices": [{"touch": {"below": {"bytes": 1, "a_ns": 1e20}}}]}`:          "the touch cost of device 0",
		`{"devices": [{"subbuffer_create_ns": -2}]}`:                               "the sub-buffer cost of device 0",
	} {
		if _, err := ParseResult([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzParse: whatever is read has costs that a replay can count with.
func FuzzParse(f *testing.F) {
	f.Add([]byte(twoCards), "0")
	f.Add([]byte(`{"devices":[{"create":{"a_ns":1e308,"b_ns_per_byte":1e308}}]}`), "")
	f.Fuzz(func(t *testing.T, text []byte, which string) {
		r, err := ParseResult(text)
		if err != nil {
			return
		}
		d, err := r.Device(which)
		if err != nil {
			return
		}
		costs := d.SteadyCosts()
		if err := errors.Join(costs.Create.CheckCosts(), costs.Touch.CheckCosts(), costs.Release.CheckCosts(), costs.Part.CheckCosts()); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
