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

	"codeberg.org/gpumemtop/gpumemtop/internal/monitor"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Bounds of labels: monitoring systems keep a time series for each set of them.
const (
	labelsMax     = 16
	labelNameMax  = 63  // bytes
	labelValueMax = 128 // bytes
)

var labelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]*$`) })

// ParseLabels reads NAME=VALUE, several with commas between, as --label and GPUMEMTOP_LABEL have it.
func ParseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range strings.Split(strings.Join(texts, ","), ",") {
		if text == "" {
			continue
		}
		key, value, ok := strings.Cut(text, "=")
		switch _, twice := labels[key]; {
		case !ok:
			return nil, fmt.Errorf("bad value %q for --label: want NAME=VALUE, for example team=vision", text)
		case !labelName().MatchString(key) || len(key) > labelNameMax:
			return nil, fmt.Errorf("bad name %q for --label: want small letters, digits and _, at most %d", key, labelNameMax)
		case value == "" || len(value) > labelValueMax || !utf8.ValidString(value) || units.Clean(value) != value:
			return nil, fmt.Errorf("bad value of --label %s: want 1 to %d bytes of text in UTF-8 without control characters", key, labelValueMax)
		case twice:
			return nil, fmt.Errorf("--label %s has two values: give it once", key)
		case len(labels) == labelsMax:
			return nil, fmt.Errorf("more than %d labels: leave some --label out", labelsMax)
		}
		labels[key] = value
	}
	return labels, nil
}

// revisionVariables are where CI systems say which state of the sources is built: Jenkins, GitHub, GitLab, Buildkite, CircleCI.
var revisionVariables = []string{"GIT_COMMIT", "GIT_REVISION", "GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1"}

// identity is how a fleet knows the subject. Of programs that run already only the labels are known.
func (s *Subject) identity() recording.Identity {
	if s.Attached {
		return recording.Identity{Labels: s.Labels}
	}
	id := recording.Identity{Labels: s.Labels, User: cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), strconv.Itoa(os.Getuid()))}
	id.Job, id.Step, id.Rank = monitor.Environment()
	for _, name := range revisionVariables {
		id.Revision = cmp.Or(id.Revision, os.Getenv(name))
	}
	for _, text := range []*string{&id.User, &id.Job, &id.Step, &id.Rank, &id.Revision} {
		*text = units.Clean((*text)[:min(len(*text), labelValueMax)])
	}
	return id
}
