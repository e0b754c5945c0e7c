package software

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrRelease is the kind of error for a version or date that names no release
// of an engine.
var ErrRelease = errors.New("unknown engine release")

// Release is one build of an engine, or the span of builds a date range covers.
type Release struct {
	// Engine is the name of the engine.
	Engine string
	// Version is the release number; for a nightly build or a date it is the
	// newest release at that day. Plug-in engines carry their host's number.
	Version string
	// Date is the day of the build; for a span it is the middle.
	Date Date
	// From and To are the first and last day of a span; both equal Date for a
	// single build.
	From, To Date
	// Listed is set when the calendar names exactly this version; otherwise
	// Date is the asked day, or that of the newest listed release before it.
	Listed bool
	// Approximate is set when the calendar knows the day only roughly.
	Approximate bool
}

// Span reports whether r stands for builds of different days.
func (r Release) Span() bool { return r.From != r.To }

// String returns "engine version (date)".
func (r Release) String() string {
	name := r.Engine
	if r.Version != "" {
		name += " " + r.Version
	}
	if r.Span() {
		return fmt.Sprintf("%s (%s..%s)", name, r.From, r.To)
	}
	return fmt.Sprintf("%s (%s)", name, r.Date)
}

// calendar is one listed release.
type calendarEntry struct {
	Version     string `yaml:"version"`
	Date        string `yaml:"date"`
	Approximate bool   `yaml:"approximate"`
	Series      string `yaml:"series"`
	Source      string `yaml:"source"`

	number version
	day    Date
}

// Latest returns the newest release of the calendar.
func (e *Engine) Latest() Release {
	for i := len(e.calendar) - 1; i >= 0; i-- {
		if e.calendar[i].Series == "" {
			return e.listed(i)
		}
	}
	return Release{Engine: e.Name}
}

// Releases returns the calendar, oldest first.
func (e *Engine) Releases() []Release {
	out := make([]Release, len(e.calendar))
	for i := range e.calendar {
		out[i] = e.listed(i)
	}
	return out
}

func (e *Engine) listed(i int) Release {
	c := &e.calendar[i]
	return Release{Engine: e.Name, Version: c.Version, Date: c.day, From: c.day, To: c.day,
		Listed: true, Approximate: c.Approximate}
}

// Release resolves a version ("0.19.0", "v0.5.9"), an image tag
// ("rocm/atom-dev:vllm-v0.19.0-nightly_20260516"), a day ("2026-05-24"), a
// range of days ("2025-09-29..2026-07-18"), or "" and "latest" for the newest.
// The error is of kind [ErrRelease].
func (e *Engine) Release(spec string) (Release, error) {
	s := strings.TrimSpace(spec)
	if s == "" || s == "latest" {
		return e.Latest(), nil
	}
	if from, to, ok := strings.Cut(s, ".."); ok {
		return e.span(from, to)
	}
	if first, last, err := ParseDate(s); err == nil {
		return e.between(first, last), nil
	}
	day, number, text := e.readTag(s)
	switch {
	case day != 0 && text != "":
		return Release{Engine: e.Name, Version: text, Date: day, From: day, To: day}, nil
	case day != 0:
		return e.between(day, day), nil
	case text != "":
		return e.numbered(number, text)
	}
	return Release{}, fmt.Errorf("%s %q: %w; know versions %s, dates and image tags that contain one",
		e.Name, spec, ErrRelease, e.known())
}

// Resolve resolves a version or image tag, and where that names none ("",
// "latest", a digest) the day it was used.
func (e *Engine) Resolve(spec, date string) (Release, error) {
	date = strings.TrimSpace(date)
	if date == "" {
		return e.Release(spec)
	}
	if day, _, text := e.readTag(strings.TrimSpace(spec)); day != 0 || text != "" {
		if r, err := e.Release(spec); err == nil {
			return r, nil
		}
	}
	return e.Release(date)
}

func (e *Engine) span(from, to string) (Release, error) {
	first, _, err := ParseDate(strings.TrimSpace(from))
	if err != nil {
		return Release{}, fmt.Errorf("%s release range: %w: %w", e.Name, ErrRelease, err)
	}
	_, last, err := ParseDate(strings.TrimSpace(to))
	if err != nil {
		return Release{}, fmt.Errorf("%s release range: %w: %w", e.Name, ErrRelease, err)
	}
	if last < first {
		return Release{}, fmt.Errorf("%s release range %s..%s: %w: it ends before it begins", e.Name, from, to, ErrRelease)
	}
	return e.between(first, last), nil
}

// between returns the release that was newest in the middle of two days.
func (e *Engine) between(first, last Date) Release {
	middle := first + (last-first)/2
	r := Release{Engine: e.Name, Date: middle, From: first, To: last}
	for i := range e.calendar {
		if c := &e.calendar[i]; c.day <= middle && c.Series == "" {
			r.Version, r.Approximate = c.Version, c.Approximate
		}
	}
	return r
}

// numbered finds a version in the calendar, or the newest listed one before it.
func (e *Engine) numbered(number version, text string) (Release, error) {
	best := -1
	for i := range e.calendar {
		c := &e.calendar[i]
		exact := strings.EqualFold(c.Version, text) || c.number == number
		if exact || c.Series != "" && c.number.number == number.number && c.number.post == number.post && number.pre != 0 {
			r := e.listed(i)
			r.Version = text
			return r, nil
		}
		// An unlisted version takes the date of the newest one before it, in
		// its own series: numbers of a wrapper do not compare with ours.
		if c.Series == "" && c.number.less(number) && (best < 0 || !c.number.less(e.calendar[best].number)) {
			best = i
		}
	}
	if best < 0 {
		return Release{}, fmt.Errorf("%s %s: %w: older than the oldest known; know versions %s",
			e.Name, text, ErrRelease, e.known())
	}
	r := e.listed(best)
	r.Version, r.Listed = text, false
	return r, nil
}

var tagDay = regexp.MustCompile(`(?:^|[^0-9])(20\d{6})(?:\d{4})?(?:[^0-9]|$)`)

// readTag finds a build day and a release number of this engine in an image
// tag or a free-form version text: the number behind the engine's own name, or
// else the one the tag starts with. Numbers of other software in the same tag
// (rocm7.2.0, pytorch2.9) are passed over.
func (e *Engine) readTag(s string) (Date, version, string) {
	if i := strings.Index(s, "@sha256"); i >= 0 {
		s = s[:i]
	}
	var day Date
	if m := tagDay.FindStringSubmatch(s); m != nil {
		day, _ = compactDate(m[1])
	}
	tag := s
	if i := strings.LastIndex(s, ":"); i >= 0 {
		tag = s[i+1:]
	}
	for _, text := range []string{tag, s} {
		lower := strings.ToLower(text)
		for _, word := range e.words {
			for rest := lower; ; {
				i := strings.Index(rest, word)
				if i < 0 {
					break
				}
				rest = rest[i+len(word):]
				if v, t, ok := parseVersion(strings.TrimLeft(rest, "-_ :")); ok {
					return day, v, t
				}
			}
		}
	}
	if v, t, ok := parseVersion(tag); ok {
		return day, v, t
	}
	return day, version{}, ""
}

func (e *Engine) known() string {
	if len(e.calendar) == 0 {
		return "none"
	}
	return e.calendar[0].Version + " to " + e.Latest().Version
}
