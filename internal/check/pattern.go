package check

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

const (
	patternMax      = 4096     // bytes of a pattern
	patternsMax     = 64 << 20 // bytes that all patterns of a file take
	instructionSize = 128      // bytes that an instruction of a pattern takes
)

// compilePattern makes a pattern, if there is room for it: a few bytes can ask for thousands of repetitions.
func compilePattern(pattern string, keep *budget.Budget) (*regexp.Regexp, error) {
	if len(pattern) > patternMax {
		return nil, fmt.Errorf("a pattern of %d bytes: want at most %d", len(pattern), patternMax)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if !keep.Charge(int64(min(patternSize(tree), math.MaxInt64/2))) {
		return nil, errors.New("the patterns take too much memory: want fewer repetitions")
	}
	return regexp.Compile(pattern)
}

// patternSize returns about how much memory a pattern takes, in bytes.
func patternSize(tree *syntax.Regexp) float64 {
	size := float64(instructionSize + 4*len(tree.Rune))
	if tree.Op == syntax.OpLiteral {
		size = float64(instructionSize * (1 + len(tree.Rune)))
	}
	for _, sub := range tree.Sub {
		size += patternSize(sub)
	}
	if tree.Op == syntax.OpRepeat {
		size *= float64(max(tree.Min+1, tree.Max, 1))
	}
	return size
}
