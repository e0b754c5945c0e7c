package software

import (
	"fmt"
	"strconv"
	"time"
)

// Date is a calendar day, counted from 1970-01-01; zero means unknown.
type Date int32

// NewDate returns the day of a year, month and day of month.
func NewDate(year, month, day int) Date {
	return Date(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// String returns the day as YYYY-MM-DD, or "unknown".
func (d Date) String() string {
	if d == 0 {
		return "unknown"
	}
	return time.Unix(int64(d)*86400, 0).UTC().Format("2006-01-02")
}

// ParseDate reads YYYY-MM-DD, YYYY-MM or YYYY and returns the first and last
// day it covers.
func ParseDate(s string) (first, last Date, err error) {
	for _, f := range []struct {
		layout              string
		years, months, days int
	}{{"2006-01-02", 0, 0, 1}, {"2006-01", 0, 1, 0}, {"2006", 1, 0, 0}} {
		if t, err := time.Parse(f.layout, s); err == nil && t.Year() >= 2000 {
			end := t.AddDate(f.years, f.months, f.days)
			return Date(t.Unix() / 86400), Date(end.Unix()/86400) - 1, nil
		}
	}
	return 0, 0, fmt.Errorf("date %q: want YYYY-MM-DD, YYYY-MM or YYYY", s)
}

// compactDate reads the leading YYYYMMDD of s, as image tags carry it.
func compactDate(s string) (Date, bool) {
	if len(s) < 8 {
		return 0, false
	}
	if _, err := strconv.Atoi(s[:8]); err != nil {
		return 0, false
	}
	t, err := time.Parse("20060102", s[:8])
	if err != nil || t.Year() < 2020 || t.Year() > 2099 {
		return 0, false
	}
	return Date(t.Unix() / 86400), true
}
