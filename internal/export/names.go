package export

import (
	"bytes"
	"encoding/json"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// clean makes text from a target safe to print. Perfetto fails on any control character, DEL included.
func clean(text string) string { return units.Clean(text) }

// count writes a number of things.
func count(n uint64, thing string) string { return units.Count(n, thing) }

// quote writes text as a JSON string. It leaves < and > of C++ names readable.
func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(clean(text)); err != nil {
		return `""` // cannot happen: a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
