package fio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/windrow-sim/windrow/internal/units"
)

// Limits on the contents of a file, far above those of fio, so that a hostile file cannot exhaust
// memory: fio runs at most 4096 jobs, with some 1900 bins in a histogram and some 300 options.
const (
	maxJobs = 1 << 16
	maxKeys = 1 << 14
)

// The types below accept any JSON value in their place. A value of another kind counts as absent,
// so that an odd field loses that field and not the file.

// document is one JSON object of fio.
type document struct {
	Version   text    `json:"fio version"`
	Timestamp number  `json:"timestamp"` // seconds since 1970
	Global    globals `json:"global options"`
	Jobs      jobs    `json:"jobs"`
	Clients   jobs    `json:"client_stats"`
}

type job struct {
	Name    text           `json:"jobname"`
	Host    text           `json:"hostname"`
	Port    text           `json:"port"`
	Group   number         `json:"groupid"`
	Error   number         `json:"error"`
	Start   number         `json:"job_start"` // ms since 1970
	Failed  number         `json:"total_err"` // requests, with continue_on_error
	First   number         `json:"first_error"`
	Steady  *steadyState   `json:"steadystate"`
	Elapsed number         `json:"elapsed"` // seconds since fio started
	Options *optionsObject `json:"job options"`
	Read    *direction     `json:"read"`
	Write   *direction     `json:"write"`
	Trim    *direction     `json:"trim"`
	Mixed   *direction     `json:"mixed"`
}

type steadyState struct {
	Criterion text   `json:"ss"`
	Attained  number `json:"attained"`
}

type direction struct {
	IOBytes  number `json:"io_bytes"`
	IOKBytes number `json:"io_kbytes"`
	BWBytes  number `json:"bw_bytes"`
	BW       number `json:"bw"` // KiB/s
	IOPS     number `json:"iops"`
	Runtime  number `json:"runtime"` // ms
	IOs      number `json:"total_ios"`
	Short    number `json:"short_ios"`
	Dropped  number `json:"drop_ios"`
	// KiB/s in samples of half a second
	BWMin     number   `json:"bw_min"`
	BWMax     number   `json:"bw_max"`
	BWMean    number   `json:"bw_mean"`
	BWDev     number   `json:"bw_dev"`
	BWSamples number   `json:"bw_samples"`
	Slat      *latency `json:"slat"` // µs
	Clat      *latency `json:"clat"`
	Lat       *latency `json:"lat"`
	SlatNs    *latency `json:"slat_ns"`
	ClatNs    *latency `json:"clat_ns"`
	LatNs     *latency `json:"lat_ns"`
}

type latency struct {
	Mean        number `json:"mean"`
	N           number `json:"N"`
	Percentiles pairs  `json:"percentile"`
	Bins        pairs  `json:"bins"`
}

// number is a finite number, also in quotes. fio prints nan for a number that it could not compute.
type number struct {
	v   float64
	set bool
}

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
	*n = number{}
	if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		*n = number{v, true}
	}
	return nil
}

// maxCount bounds counts, bytes and times: above it the numbers of the JSON would not be exact.
const maxCount = 1 << 53

// count returns a whole number; nil when there is none, it is negative or too large.
func (n number) count() *int64 {
	if !n.set || n.v < 0 || n.v > maxCount {
		return nil
	}
	return ptr(int64(math.Round(n.v)))
}

// nanos returns a time of n units; nil unless it is positive: fio writes 0 for an unmeasured time.
func (n number) nanos(unit units.Nanos) *units.Nanos {
	v := math.Round(n.v * float64(unit))
	if !n.set || v < 1 || v > maxCount {
		return nil
	}
	return ptr(units.Nanos(v))
}

// whole returns the number as an int; 0 when it is absent or does not fit.
func (n number) whole() int {
	if !n.set || math.Abs(n.v) > 1<<31 {
		return 0
	}
	return int(n.v)
}

// text is a string, or a number or truth value as its text.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch {
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = text(s)
	case b[0] != '{' && b[0] != '[' && string(b) != "null":
		*t = text(b)
	}
	return nil
}

// pairs are the entries of an object with numbers as keys and as values, in ascending order of
// keys. The last of equal keys counts.
type pairs struct {
	list []pair
	zero bool // there were keys of 0: slots that fio 2 did not fill
	// there were non-numeric keys: histograms of fio 2, whose keys are slots and not times
	odd bool
}

type pair struct{ key, value float64 }

func (p *pairs) UnmarshalJSON(b []byte) error {
	*p = pairs{}
	err := eachMember(b, func(key string, dec *json.Decoder) error {
		var value number
		if err := dec.Decode(&value); err != nil {
			return err
		}
		switch k, err := strconv.ParseFloat(key, 64); {
		case err != nil || math.IsNaN(k) || math.IsInf(k, 0):
			p.odd = true
		case k == 0:
			p.zero = true
		case value.set:
			p.list = append(p.list, pair{k, value.v})
		}
		return nil
	})
	slices.SortStableFunc(p.list, func(a, b pair) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	last := p.list[:0]
	for i, q := range p.list {
		if i+1 == len(p.list) || p.list[i+1].key != q.key {
			last = append(last, q)
		}
	}
	p.list = last
	return err
}

// optionsObject is an object of texts, nil for any other value. The last of equal keys counts.
type optionsObject map[string]text

func (o *optionsObject) UnmarshalJSON(b []byte) error {
	if *o = nil; b[0] != '{' {
		return nil
	}
	*o = optionsObject{}
	return eachMember(b, func(key string, dec *json.Decoder) error {
		var value text
		if err := dec.Decode(&value); err != nil {
			return err
		}
		(*o)[key] = value
		return nil
	})
}

// globals are the options of [global]: one object or, of several clients, a list of them with the
// client's name in each.
type globals []optionsObject

func (g *globals) UnmarshalJSON(b []byte) error {
	*g = nil
	if b[0] == '{' {
		*g = make(globals, 1)
		return json.Unmarshal(b, &(*g)[0])
	}
	return eachElement(b, func(dec *json.Decoder) error {
		var o optionsObject
		err := dec.Decode(&o)
		*g = append(*g, o)
		return err
	})
}

// of returns the global options of a client; those of all, with host "".
func (g globals) of(host, port text) optionsObject {
	for _, o := range g {
		if h, named := o["hostname"]; !named || h == host && (o["port"] == port ||
			o["port"] == "") {
			return o
		}
	}
	return nil
}

type jobs []job

func (j *jobs) UnmarshalJSON(b []byte) error {
	if *j = nil; b[0] == '[' {
		*j = jobs{} // not nil: there is a list, even an empty one
	}
	return eachElement(b, func(dec *json.Decoder) error {
		var one job
		if err := decode(dec, &one); err != nil {
			return err
		}
		*j = append(*j, one)
		return nil
	})
}

// eachElement calls f for every element of an array. f must decode the element. Any other value has
// no elements.
func eachElement(b []byte, f func(*json.Decoder) error) error {
	if b[0] != '[' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for n := 0; dec.More(); n++ {
		if n == maxJobs {
			return fmt.Errorf("it holds more than %d jobs", maxJobs)
		}
		if err := f(dec); err != nil {
			return err
		}
	}
	return nil
}

// eachMember calls f for every member of an object. f must decode its value. Any other value has no
// members.
func eachMember(b []byte, f func(key string, dec *json.Decoder) error) error {
	if b[0] != '{' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for n := 0; dec.More(); n++ {
		if n == maxKeys {
			return fmt.Errorf("an object in it has more than %d keys", maxKeys)
		}
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := f(name, dec); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the next value into v. Members of another kind stay unchanged.
func decode(dec *json.Decoder, v any) error {
	err := dec.Decode(v)
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		return nil
	}
	return err
}
