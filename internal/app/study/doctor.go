package study

import (
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
)

// DoctorOptions say what doctor knows of gpumemtop itself.
type DoctorOptions = doctor.Options

// WriteDoctorReport writes what helps and what hinders running programs here. The error carries console.StatusUnmet if they cannot run.
func WriteDoctorReport(w io.Writer, format string, options doctor.Options) error {
	if err := read.CheckFormat(format, read.TextFormats); err != nil {
		return err
	}
	report := doctor.ExamineSystem(doctor.ThisMachine(), options)
	write, to := report.WriteText, io.Writer(console.Paged{Writer: w})
	if format == "json" {
		write, to = report.WriteJSON, w
	}
	if err := write(to); err != nil {
		return err
	}
	if !report.Usable {
		return console.NewExit(console.StatusUnmet, nil)
	}
	return nil
}
