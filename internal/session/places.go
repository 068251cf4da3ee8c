package session

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Place is where a runtime folder may be made.
type Place struct {
	Path string
	Err  error // why not; nil: it may
}

// Places returns the places for a runtime folder, best first: a session takes the first without an error.
func Places() []Place {
	var list []Place
	for _, path := range candidates() {
		err := usable(path)
		if err == nil && unix.Access(path, unix.W_OK|unix.X_OK) != nil {
			err = fmt.Errorf("%s: not writable", path)
		}
		list = append(list, Place{path, err})
	}
	return list
}

// FirstPlace returns the first place where a runtime folder can be made.
func FirstPlace() (string, error) {
	var last error
	for _, place := range Places() {
		if place.Err == nil {
			return place.Path, nil
		}
		last = place.Err
	}
	return "", fmt.Errorf("no place for a runtime folder: %w", last)
}
