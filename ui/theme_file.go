package ui

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Colors are those of a user's theme.
type Colors struct {
	// Base is the theme that has what the file does not name: auto, dark, light, high-contrast or mono.
	Base string `toml:"base"`
	// Text and Background have colours by the names of styles.
	Text       map[string]string `toml:"text"`
	Background map[string]string `toml:"background"`
}

// styleNames are the styles in theme files.
var styleNames = [styleCount]string{
	plain: "plain", dim: "dim", strong: "strong", titleStyle: "title", frameStyle: "frame", focusStyle: "focus", keyStyle: "key", inUseStyle: "in_use",
	cachedStyle: "cached", coolingStyle: "cooling", freeStyle: "free", goodStyle: "good", warnStyle: "warning", badStyle: "bad", trendStyle: "trend",
	hitChartStyle: "hits", cursorStyle: "cursor", cursorTrendStyle: "cursor_trend", headStyle: "head", bannerStyle: "banner",
}

var hexForm = regexp.MustCompile("^#[0-9a-fA-F]{6}$")

// ParseColors reads a theme in TOML. The error names a line, or a key.
func ParseColors(text string) (*Colors, error) {
	var c Colors
	keys, err := document.DecodeTOML(text, &c)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if len(key.Parts) < 2 {
			continue
		}
		if color := map[string]map[string]string{"text": c.Text, "background": c.Background}[key.Parts[0]][key.Parts[1]]; !hexForm.MatchString(color) {
			return nil, fmt.Errorf("line %d: bad colour %s: want #rrggbb", key.Line, units.Clean(strconv.Quote(color)))
		}
		if !slices.Contains(styleNames[:], key.Parts[1]) {
			return nil, fmt.Errorf("line %d: no style %s: want one of %s", key.Line, units.Clean(strconv.Quote(key.Parts[1])), strings.Join(styleNames[:], ", "))
		}
	}
	return &c, nil
}

// applyColors puts the user's colours over those of a theme.
func (c *Colors) applyColors(inks *[styleCount]ink) {
	if c == nil {
		return
	}
	for st, name := range styleNames {
		if own, has := c.Text[name]; has {
			inks[st].text = own
		}
		if own, has := c.Background[name]; has && filled[st] {
			inks[st].behind = own
		}
	}
}
