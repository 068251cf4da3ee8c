package report

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// style says how to write figures: for a text, or for a page, where no line may break before a unit.
type style struct{ page bool }

// plain is the style of a text.
var plain style

func (y style) narrowSpaces(figure string) string {
	if y.page {
		return plot.NarrowSpaces(figure)
	}
	return figure
}

// formatSize writes a size for a sentence.
func (y style) formatSize(n uint64) string { return y.narrowSpaces(units.FormatLong(n)) }

func (y style) formatCount(n uint64) string {
	if y.page {
		return countText(n)
	}
	return strconv.FormatUint(n, 10)
}

func (y style) countText(n uint64, thing string) string {
	if y.page {
		return thingsText(n, thing)
	}
	return units.Count(n, thing)
}

func (y style) formatDuration(ns uint64) string {
	if y.page {
		return durationText(ns)
	}
	return units.Duration(ns)
}

func (y style) formatRate(rate float64, of uint64) string {
	if y.page {
		return rateText(rate, of)
	}
	return units.Percent(rate, of)
}

// formatFigure writes a figure for a sentence.
func (y style) formatFigure(f *figures.Figure, v figures.Value) string {
	switch f.Unit {
	case figures.Bytes:
		return y.formatSize(v.Exact)
	case figures.Rate:
		return y.formatRate(v.Number, v.Of)
	case figures.Nanos, figures.Seconds:
		return y.formatDuration(v.Exact)
	default:
		return y.formatCount(v.Exact)
	}
}

func numberCell(text string, value float64) cell {
	return cell{Text: text, Sort: strconv.FormatFloat(value, 'g', 12, 64), Number: true}
}

// cellOfFigure shows a figure. Sizes in a text's table are shorter than in a sentence.
func (y style) cellOfFigure(f *figures.Figure, v figures.Value) cell {
	switch f.Unit {
	case figures.Bytes:
		return y.bytesCell(v.Exact)
	case figures.Rate:
		return y.rateCell(v.Number, v.Of)
	default:
		return numberCell(y.formatFigure(f, v), float64(v.Exact))
	}
}

func (y style) bytesCell(n uint64) cell {
	if y.page {
		return numberCell(bytesText(n), float64(n))
	}
	return numberCell(units.Format(n), float64(n))
}

func (y style) countCell(n uint64) cell { return numberCell(y.formatCount(n), float64(n)) }

func (y style) durationCell(ns uint64) cell { return numberCell(y.formatDuration(ns), float64(ns)) }

// unknownCell stands for a number that does not exist.
func (y style) unknownCell() cell { return numberCell(y.formatRate(0, 0), -1) }

// rateCell shows part of whole.
func (y style) rateCell(rate float64, of uint64) cell {
	if of == 0 {
		return y.unknownCell()
	}
	return numberCell(y.formatRate(rate, of), rate)
}
