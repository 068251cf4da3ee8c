package report

import (
	"strconv"

	"maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// Pages are written by calls that escape text and attributes. A template engine would call methods by name, so the linker would
// keep all methods of the program, which makes each start a fifth slower.

type node = gomponents.Node

var (
	text    = gomponents.Text
	newline = gomponents.Raw("\n") // keeps lines of the source short
)

// nodesOf makes a node of every element.
func nodesOf[T any](list []T, make func(T) node) node { return gomponents.Map(list, make) }

// nodeIfGiven returns the node that make returns for a text, and nothing for an empty text.
func nodeIfGiven(s string, make func(s string) node) node {
	if s == "" {
		return nil
	}
	return make(s)
}

func paragraphNode(class string) func(s string) node {
	return func(s string) node { return html.P(html.Class(class), text(s)) }
}

func (p *htmlPage) pageNode() node {
	return html.Doctype(gomponents.El("html", html.Lang("en"), newline,
		p.headNode(), newline,
		gomponents.El("body", newline,
			html.A(html.Class("skip"), html.Href("#main"), text("Skip to the figures")), newline,
			p.headerNode(), newline, p.main(), newline,
			html.Footer(html.P(text("Words and formulas: docs/METRICS.md of gpumemtop. This file loads nothing from anywhere."))), newline,
			html.Script(gomponents.Raw(p.Script)), newline)))
}

func (p *htmlPage) headNode() node {
	return gomponents.El("head", newline,
		html.Meta(html.Charset("utf-8")), newline,
		html.Meta(gomponents.Attr("http-equiv", "Content-Security-Policy"), html.Content(p.Policy)), newline,
		html.Meta(html.Name("viewport"), html.Content("width=device-width, initial-scale=1")), newline,
		html.Meta(html.Name("color-scheme"), html.Content("light dark")), newline,
		html.Meta(html.Name("referrer"), html.Content("no-referrer")), newline,
		html.TitleEl(text(p.Title+" – gpumemtop")), newline,
		html.Link(html.Rel("icon"), html.Href("data:,")), newline,
		html.StyleEl(gomponents.Raw(p.Style)), newline)
}

func (p *htmlPage) headerNode() node {
	return html.Header(newline,
		paragraphNode("tool")("gpumemtop report"), newline,
		html.H1(text(p.Title)),
		nodeIfGiven(p.Command, func(s string) node { return html.P(html.Class("command"), html.Code(text(s))) }), newline,
		factsNode(p.Facts),
		listNode("warnings", p.Warnings), newline)
}

func factsNode(list []htmlFact) node {
	return html.Dl(html.Class("facts"), nodesOf(list, htmlFact.node))
}

func (f htmlFact) node() node {
	wide := gomponents.If(len(f.Words) > 0, html.Class("wide"))
	words := nodesOf(f.Words, func(word string) node { return gomponents.Group{html.Code(text(word)), text(" ")} })
	return gomponents.Group{newline, html.Div(wide, html.Dt(text(f.Name)), html.Dd(text(f.Text), words))}
}

// listNode makes a list of lines; nothing if there are none.
func listNode(class string, lines []string) node {
	if len(lines) == 0 {
		return nil
	}
	return gomponents.Group{newline, html.Ul(html.Class(class), nodesOf(lines, itemNode))}
}

func itemNode(s string) node { return html.Li(text(s)) }

func (p *htmlPage) navNode() node {
	link := func(id, title string) node {
		return gomponents.Group{html.Li(html.A(html.Href("#"+id), text(title))), newline}
	}
	toSection := func(s section) node { return link(s.ID, s.Title) }
	return html.Nav(html.Aria("label", "Sections"), html.Ul(nodesOf(p.Sections, toSection), link("settings", "Settings")))
}

func (p *htmlPage) main() node {
	return html.Main(html.ID("main"), newline,
		nodesOf(p.First, section.node),
		html.Section(html.ID("findings"), newline, html.H2(text("Findings")), newline, p.diagnosesNode()), newline,
		html.Section(html.ID("figures"), newline, html.H2(text("Key figures")), newline,
			html.Dl(html.Class("tiles"), nodesOf(p.Tiles, htmlTile.node))), newline,
		p.navNode(), newline,
		nodesOf(p.Sections, section.node),
		html.Section(html.ID("settings"), newline, html.H2(text("Settings")), newline, factsNode(p.Settings)), newline)
}

func (p *htmlPage) diagnosesNode() node {
	if len(p.Diagnoses) == 0 {
		return paragraphNode("intro")(p.AllClear)
	}
	return gomponents.Group{html.Div(html.Class("cards"), nodesOf(p.Diagnoses, htmlDiagnosis.node)), nodeIfGiven(p.MoreDiagnoses, paragraphNode("left"))}
}

func (d htmlDiagnosis) node() node {
	try := gomponents.If(len(d.Command) > 0, html.P(html.Class("try"), commandNode(d.Command)))
	return gomponents.Group{newline, html.Article(html.Class("card "+d.Severity), newline,
		html.H3(html.Span(html.Class("severity"), text(d.Severity)), text(" "+d.Title)), newline,
		html.P(text(d.Text)),
		nodeIfGiven(d.Tag, func(s string) node { return html.P(html.Class("at"), text("at "), nameNode(s)) }),
		nodeIfGiven(d.Why, func(s string) node { return html.P(text(s)) }), try)}
}

func (t htmlTile) node() node {
	return gomponents.Group{newline, html.Div(html.Dt(text(t.Name)), html.Dd(html.B(text(t.Value)), html.Span(text(t.Note))))}
}

func nameNode(s string) node { return html.Span(html.Class("name"), text(s)) }

// commandNode shows a command line. Each word is an element, so that a copy is as it was typed.
func commandNode(words []string) node {
	var spans gomponents.Group
	for i, word := range words {
		if i > 0 {
			spans = append(spans, text(" "))
		}
		spans = append(spans, html.Span(text(word)))
	}
	return html.Code(html.Class("copy"), spans)
}

func (s section) node() node {
	plots := gomponents.If(len(s.Plots) > 0, html.Div(html.Class("plots"), nodesOf(s.Plots, htmlPlot.node)))
	return gomponents.Group{html.Section(html.ID(s.ID), newline, html.H2(text(s.Title)),
		nodeIfGiven(s.Intro, paragraphNode("intro")), plots, nodesOf(s.Tables, table.node), flamesNode(s.Flames), newline), newline}
}

func (p htmlPlot) node() node {
	legend := gomponents.If(len(p.Legend) > 0, html.Ul(html.Class("legend"), nodesOf(p.Legend, func(l htmlLegend) node {
		return html.Li(html.I(html.Class("swatch "+l.Class)), nameNode(l.Name))
	})))
	note := nodeIfGiven(p.Note, func(s string) node { return gomponents.Group{text(" "), html.Span(text(s))} })
	return gomponents.Group{newline, html.Figure(html.Class("chart"), newline,
		html.FigCaption(html.B(text(p.Title)), note), newline, gomponents.Raw(p.SVG), legend)}
}

func (t table) node() node {
	heads := nodesOf(t.Columns, func(c column) node {
		if c.Number {
			return html.Th(html.Scope("col"), html.Class("n"), text(c.Title))
		}
		return html.Th(html.Scope("col"), text(c.Title))
	})
	rows := nodesOf(t.Rows, func(cells []cell) node { return gomponents.Group{newline, html.Tr(nodesOf(cells, cell.node))} })
	return gomponents.Group{newline, html.Div(html.Class("scroll"), html.TabIndex("0"), html.Role("region"), html.Aria("label", t.Title), newline,
		html.Table(html.Class("sortable"), html.THead(html.Tr(heads)), html.TBody(rows))), nodeIfGiven(t.Left, paragraphNode("left"))}
}

func (c cell) node() node {
	class := c.Class
	if c.Number {
		class = "n " + class
	}
	bar := nodeIfGiven(c.Bar, func(width string) node {
		return html.SVG(html.Class("hbar"), html.Aria("hidden", "true"),
			gomponents.El("rect", html.Width(width), html.Height("100%"), gomponents.Attr("rx", "2")))
	})
	command := gomponents.If(len(c.Code) > 0, gomponents.Group{commandNode(c.Code), text(" ")})
	shown := text(c.Text)
	if len(c.Stack) > 0 {
		shown = html.Details(html.Summary(nameNode(c.Text)), html.Ol(html.Class("stack"), nodesOf(c.Stack, itemNode)))
	}
	return html.Td(html.Class(class), nodeIfGiven(c.Sort, func(s string) node { return html.Data("v", s) }), bar, command, shown)
}

func flamesNode(list []htmlFlame) node {
	if len(list) == 0 {
		return nil
	}
	var picks, boxes gomponents.Group
	for i, f := range list {
		at := strconv.Itoa(i)
		picks = append(picks, newline,
			html.Input(html.Type("radio"), html.Name("flame"), html.Class("pick pick"+at), html.ID("pick-"+f.ID), gomponents.If(i == 0, html.Checked())),
			html.Label(html.For("pick-"+f.ID), text(f.Name)))
		boxes = append(boxes, newline,
			html.Div(html.Class("flame-box box"+at), html.ID("flame-"+f.ID), gomponents.Raw(f.SVG), nodeIfGiven(f.Note, paragraphNode("left"))))
	}
	search := html.P(html.Class("tools"), gomponents.Attr("hidden"),
		html.Input(html.Type("search"), html.Placeholder("search, as a regular expression"), html.Aria("label", "Search the call tree")), text(" "),
		html.Button(html.Type("button"), text("whole tree")), text(" "), gomponents.El("output", html.Aria("live", "polite")))
	return gomponents.Group{newline, html.Div(html.Class("flames"), picks, newline, search, boxes)}
}
