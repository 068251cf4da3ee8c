package watch

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/monitor"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// MonitorOptions say which monitoring systems get figures. Empty ones get none.
type MonitorOptions struct {
	Listen   string // address, see monitor.Listen
	Textfile string // folder
	Push     string // URL of a Pushgateway
	OTLP     string // URL of an OpenTelemetry collector, or monitor.OTLPFromEnvironment
}

// Monitor gives figures of a subject to monitoring systems.
type Monitor struct {
	options MonitorOptions
	subject *Subject
	notes   *console.Notes
	server  *monitor.Server // nil: none
	otlp    *monitor.OTLP   // nil: none
}

// NewMonitor checks the options and opens the address. The monitor must be closed.
func NewMonitor(o MonitorOptions, subject *Subject, notes *console.Notes) (*Monitor, error) {
	m := &Monitor{options: o, subject: subject, notes: notes}
	if o.Textfile != "" {
		if info, err := os.Stat(o.Textfile); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--textfile %s: want a folder that is there", o.Textfile)
		}
	}
	if o.Push != "" {
		if u, err := url.Parse(o.Push); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("bad value %q for --push: want a URL, for example http://127.0.0.1:9091", o.Push)
		}
	}
	if o.OTLP != "" {
		if err := monitor.CheckOTLPAddress(o.OTLP); err != nil {
			return nil, err
		}
	}
	if o.Listen != "" {
		var err error
		m.server, err = monitor.Listen(o.Listen)
		switch {
		case errors.Is(err, unix.EADDRINUSE): // no reason not to start the program
			notes.Add(err.Error())
		case err != nil:
			return nil, err
		case m.server.HasOtherPortThanAsked():
			notes.Add("--listen " + o.Listen + " is in use")
		}
	}
	return m, nil
}

// Start begins to answer from what a model publishes. A nil Monitor does not.
func (m *Monitor) Start(model *stats.Model) {
	if m == nil {
		return
	}
	source := model.PublishedSnapshot
	if m.options.OTLP != "" {
		var err error
		if m.otlp, err = monitor.StartOTLP(m.options.OTLP, source, m.programAndVersion()); err != nil {
			m.notes.Add("--otlp: " + err.Error())
		}
	}
	if m.server == nil {
		return
	}
	m.server.StartAnswering(source, m.programAndVersion(), func(s *stats.Snapshot, w io.Writer) error {
		summary := report.NewSummary(s)
		if m.subject.Attached {
			summary = report.NewWatchSummary(s, 0)
		}
		return summary.WriteJSON(w)
	})
	m.notes.Add("figures are at " + m.server.Address())
}

func (m *Monitor) programAndVersion() monitor.Run {
	return monitor.Run{Program: m.subject.Name, Version: m.subject.identityForFleet().Revision}
}

// PublishLastFigures writes and pushes the last figures.
func (m *Monitor) PublishLastFigures(last *stats.Snapshot) {
	pid := os.Getpid()
	if len(last.Processes) > 0 {
		pid = last.Processes[0].PID
	}
	if m.otlp != nil {
		if err := m.otlp.SendLastFigures(last); err != nil {
			m.notes.Add("--otlp: " + err.Error())
		}
	}
	if m.options.Textfile != "" {
		if err := monitor.WriteTextfile(m.options.Textfile, pid, last, m.programAndVersion()); err != nil {
			m.notes.Add("--textfile: " + err.Error())
		}
	}
	if m.options.Push != "" {
		if err := monitor.PushToGateway(m.options.Push, last, m.programAndVersion()); err != nil {
			m.notes.Add("--push: " + err.Error())
		}
	}
}

// Close ends the answers.
func (m *Monitor) Close() {
	if m != nil && m.server != nil {
		_ = m.server.Close() // nothing is left to lose
	}
}
