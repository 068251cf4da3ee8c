package check

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
)

// metrics are the figures that rules can bound, in the order of the table.
var metrics = slices.DeleteFunc(slices.Clone(figures.AllFigures()), func(f *figures.Figure) bool { return f.Rule == "" })

// lostEvents is the rule that holds by default.
var lostEvents = figures.LostEvents.Rule
