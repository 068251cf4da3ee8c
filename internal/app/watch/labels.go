package watch

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds of labels: monitoring systems keep a time series for each set of them.
const (
	labelsMax     = 16
	labelNameMax  = 63  // bytes
	labelValueMax = 128 // bytes
)

var labelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]*$`) })

// ParseLabels reads NAME=VALUE, several with commas between, as --label and GPUMEMTOP_LABEL have it. What it cannot take is left
// out, and the error names the first.
func ParseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	var first error
	for _, text := range strings.Split(strings.Join(texts, ","), ",") {
		if text == "" {
			continue
		}
		key, value, ok := strings.Cut(text, "=")
		_, twice := labels[key]
		var err error
		switch {
		case !ok:
			err = fmt.Errorf("bad value %q for --label: want NAME=VALUE, for example team=vision", text)
		case !labelName().MatchString(key) || len(key) > labelNameMax:
			err = fmt.Errorf("bad name %q for --label: want small letters, digits and _, at most %d", key, labelNameMax)
		case value == "" || len(value) > labelValueMax || !utf8.ValidString(value) || units.Clean(value) != value:
			err = fmt.Errorf("bad value of --label %s: want 1 to %d bytes of text in UTF-8 without control characters", key, labelValueMax)
		case twice:
			err = fmt.Errorf("--label %s has two values: give it once", key)
		case len(labels) == labelsMax:
			err = fmt.Errorf("more than %d labels: leave some --label out", labelsMax)
		default:
			labels[key] = value
		}
		first = cmp.Or(first, err)
	}
	return labels, first
}

// revisionVariables are where CI systems say which state of the sources is built: Jenkins, GitHub, GitLab, Buildkite, CircleCI.
var revisionVariables = []string{"GIT_COMMIT", "GIT_REVISION", "GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1"}

// identityForFleet is how a fleet knows the subject. Of programs that run already only what the user said is known.
func (s *Subject) identityForFleet() recording.Identity {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // a kernel without it
	id := recording.Identity{Labels: s.Labels, Boot: strings.TrimSpace(string(boot))}
	if id.App = s.App; s.Attached {
		return id
	}
	id.User = cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), strconv.Itoa(os.Getuid()))
	id.Place = wire.ReadPlace(func(file string) []byte {
		if file == "environ" {
			return []byte(strings.Join(os.Environ(), "\x00"))
		}
		return nil
	})
	for _, name := range revisionVariables {
		id.Revision = cmp.Or(id.Revision, os.Getenv(name))
	}
	for _, text := range []*string{&id.User, &id.Revision} {
		*text = units.Clean((*text)[:min(len(*text), labelValueMax)])
	}
	return id
}
