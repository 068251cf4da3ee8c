package export

import (
	"bytes"
	"encoding/json"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// cleanText makes text from a target safe to print. Perfetto fails on any control character, DEL included.
func cleanText(text string) string { return units.Clean(text) }

// countText writes a number of things.
func countText(n uint64, thing string) string { return units.Count(n, thing) }

// quoteJSON writes text as a JSON string. It leaves < and > of C++ names readable.
func quoteJSON(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cleanText(text)); err != nil {
		return `""` // cannot happen: a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
