package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// untagged is the name of everything without a tag. Names are those that internal/model gives: a test compares them.
const untagged = "(untagged)"

// tagName returns the name that a TAG or SITE record gives its tag, "" when it gives none.
func tagName(r *wire.Record, wrappers []*regexp.Regexp) string {
	if r.Kind == wire.KindSite {
		return siteName(r.Payload, wrappers)
	}
	switch wire.TagMode(r.Op) {
	case wire.TagsSize:
		return "size " + classSize(r.Link)
	case wire.TagsThread:
		return fmt.Sprintf("thread %d", r.Link)
	}
	return ""
}

// siteName folds the frames of a SITE payload to one line: the innermost frame that is no wrapper, or the innermost
// when all are.
func siteName(payload []byte, wrappers []*regexp.Regexp) string {
	first := ""
	for line := range strings.Lines(strings.TrimRight(string(payload), "\x00")) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 4)
		for len(fields) < 4 {
			fields = append(fields, "")
		}
		for i, field := range fields {
			fields[i] = clean(field)
		}
		name := frameName(fields[0], fields[1], fields[2], fields[3])
		switch {
		case strings.Join(fields, "") == "":
		case !matches(wrappers, fields[0]):
			return name
		case first == "":
			first = name
		}
	}
	return first
}

// frameName is "file.c:88 function", or "function module+0x12" when the file is not known.
func frameName(function, file, line, place string) string {
	if file == "" {
		if place != "" {
			place = path.Base(place)
		}
		return strings.TrimSpace(function + " " + place)
	}
	name := path.Base(file)
	if line != "" && line != "0" {
		name += ":" + line
	}
	return strings.TrimSpace(name + " " + function)
}

func matches(wrappers []*regexp.Regexp, function string) bool {
	for _, w := range wrappers {
		if function != "" && w.MatchString(function) {
			return true
		}
	}
	return false
}

// classSize writes the size of a size class as tag names have it: one decimal at every size.
func classSize(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	const units = "KMGTPE"
	value, unit := float64(n)/(1<<10), 0
	for ; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f%c", value, units[unit])
}

// clean makes text of a target safe to print: valid UTF-8 on one line, without characters that control a terminal or
// change the writing direction. Perfetto gives up on any control character, DEL included.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

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
