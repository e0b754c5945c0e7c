package moe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// ErrCoverage is the kind of every error of [ParseCoverage].
var ErrCoverage = errors.New("invalid router coverage")

// Limits of what a coverage file may say.
const (
	maxCoveragePoints = 4096
	maxCoverage       = 2.0
	maxTokens         = 1e12
)

// coverageKey holds the map in the object form of a file.
const coverageKey = "coverage_vs_uniform"

// CoveragePoint is the number of distinct experts measured at a token count,
// over what a uniform router would touch.
type CoveragePoint struct{ Tokens, Share float64 }

// Coverage is a measured correction of the uniform distinct count. The zero
// value is no correction. It is immutable.
type Coverage struct{ points []coverageKnot }

type coverageKnot struct{ logTokens, share float64 }

// NewCoverage returns the coverage through points. It fails on values out of
// range and on a token count given twice.
func NewCoverage(points []CoveragePoint) (Coverage, error) {
	if len(points) == 0 {
		return Coverage{}, fmt.Errorf("%w: no points", ErrCoverage)
	}
	if len(points) > maxCoveragePoints {
		return Coverage{}, fmt.Errorf("%w: %d points; at most %d", ErrCoverage, len(points), maxCoveragePoints)
	}
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b CoveragePoint) int { return cmp.Compare(a.Tokens, b.Tokens) })
	knots := make([]coverageKnot, 0, len(sorted))
	for i, p := range sorted {
		switch {
		case !(p.Tokens > 0 && p.Tokens <= maxTokens):
			return Coverage{}, fmt.Errorf("%w: token count %g; want a positive number", ErrCoverage, p.Tokens)
		case !(p.Share > 0 && p.Share <= maxCoverage):
			return Coverage{}, fmt.Errorf("%w: coverage %g at %g tokens; want a share in (0, %g]", ErrCoverage, p.Share, p.Tokens, maxCoverage)
		case i > 0 && p.Tokens == sorted[i-1].Tokens:
			return Coverage{}, fmt.Errorf("%w: %g tokens given twice", ErrCoverage, p.Tokens)
		}
		knots = append(knots, coverageKnot{math.Log(p.Tokens), p.Share})
	}
	return Coverage{points: knots}, nil
}

// IsZero reports whether there is no correction.
func (c Coverage) IsZero() bool { return len(c.points) == 0 }

// At returns the share at a token count: linear in log tokens between the
// points, flat outside, 1 without points.
func (c Coverage) At(tokens float64) float64 {
	n := len(c.points)
	if n == 0 {
		return 1
	}
	if !(tokens > 0) {
		return c.points[0].share
	}
	x := math.Log(tokens)
	if x <= c.points[0].logTokens {
		return c.points[0].share
	}
	for i := 1; i < n; i++ {
		if q := c.points[i]; x <= q.logTokens {
			p := c.points[i-1]
			return p.share + (q.share-p.share)*(x-p.logTokens)/(q.logTokens-p.logTokens)
		}
	}
	return c.points[n-1].share
}

// ParseCoverage reads a coverage file: a JSON object from token counts to
// shares, {"8": 0.85, "32": 0.71}, or an object that holds such a map under
// "coverage_vs_uniform" beside other facts.
func ParseCoverage(data []byte) (Coverage, error) {
	fields, err := object(data)
	if err != nil {
		return Coverage{}, fmt.Errorf("%w: %w", ErrCoverage, err)
	}
	if i := slices.IndexFunc(fields, func(f field) bool { return f.key == coverageKey }); i >= 0 {
		if fields, err = object(fields[i].value); err != nil {
			return Coverage{}, fmt.Errorf("%w: %s: %w", ErrCoverage, coverageKey, err)
		}
	}
	points := make([]CoveragePoint, 0, len(fields))
	for _, f := range fields {
		tokens, err := strconv.ParseFloat(f.key, 64)
		if err != nil {
			return Coverage{}, fmt.Errorf("%w: key %.40q is not a token count (and there is no %q)", ErrCoverage, f.key, coverageKey)
		}
		var share float64
		if err := json.Unmarshal(f.value, &share); err != nil || string(f.value) == "null" {
			return Coverage{}, fmt.Errorf("%w: the value at %s tokens is not a number", ErrCoverage, f.key)
		}
		points = append(points, CoveragePoint{Tokens: tokens, Share: share})
	}
	return NewCoverage(points)
}

type field struct {
	key   string
	value json.RawMessage
}

// object splits a JSON object into its fields, in order; a key given twice is an
// error.
func object(data []byte) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if t != json.Delim('{') {
		return nil, errors.New("want a JSON object from token counts to shares")
	}
	var fields []field
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		f := field{key: fmt.Sprint(t)}
		if seen[f.key] {
			return nil, fmt.Errorf("key %.40q given twice", f.key)
		}
		seen[f.key] = true
		if err := d.Decode(&f.value); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		fields = append(fields, f)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON object")
	}
	return fields, nil
}
