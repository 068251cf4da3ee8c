package convert

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// TestReducedFits: in a narrow window a row of the table is one line, and so are the row of titles and what to do next.
func TestReducedFits(t *testing.T) {
	peak := span{900 << 10, 900 << 10, 900 << 10}
	r := reduced{Processes: 4, Hosts: 1, Sites: []reducedSite{
		{Program: "train", Whole: true, Site: "(process)", Processes: 4, Peak: peak},
		{Program: "train", Site: "train.c:88 create_filled_with_ones", Processes: 4, Peak: peak},
	}}
	for _, outliers := range [][]outlier{nil, {{Rank: "3", Peak: 900 << 20}, {Rank: "4", Peak: 901 << 20}}} {
		r.Sites[1].Outliers = outliers
		for _, width := range []int{60, 80, 100, 120} {
			text := r.reducedText(0, width)
			for line := range strings.Lines(text) {
				if units.Width(strings.TrimSuffix(line, "\n")) > width {
					t.Errorf("%d columns: %q", width, line)
				}
			}
			if !strings.Contains(text, "CALL SITE  ") || !strings.Contains(text, "OUTLIERS") || !strings.Contains(text, "train.c:88 ") || !strings.Contains(text, "\nnext: ") {
				t.Errorf("%d columns:\n%s", width, text)
			}
		}
	}
}
