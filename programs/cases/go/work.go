// Ordinary work with Go's standard library: `work NAME SCALE` does one kind and prints a number that depends on all of it, `work` does all.
package main

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/template"
)

type record struct {
	Name  string            `json:"name"`
	Value float64           `json:"value"`
	Tags  []string          `json:"tags"`
	Attr  map[string]string `json:"attr"`
}

func encodeAndDecode(n int) int {
	var rs []record
	for i := 0; i < n; i++ {
		rs = append(rs, record{fmt.Sprintf("n%d", i), float64(i) * 1.25, []string{"a", "b", fmt.Sprint(i)}, map[string]string{"k": fmt.Sprint(i * 7)}})
	}
	b, _ := json.Marshal(rs)
	var back []record
	if err := json.Unmarshal(b, &back); err != nil {
		panic(err)
	}
	return len(b) + len(back)
}
func compress(n int) int {
	var src bytes.Buffer
	x := uint32(1)
	for src.Len() < n {
		x = x*1664525 + 1013904223
		fmt.Fprintf(&src, "line %d %x\n", x%1000, x>>20)
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, 6)
	w.Write(src.Bytes())
	w.Close()
	r, _ := io.ReadAll(flate.NewReader(&out))
	s := sha256.Sum256(r)
	return int(s[0]) + len(r)
}
func sortAndCount(n int) int {
	a := make([]string, n)
	x := uint32(7)
	for i := range a {
		x = x*1664525 + 1013904223
		a[i] = fmt.Sprintf("%08x", x)
	}
	sort.Strings(a)
	m := map[string]int{}
	for i, s := range a {
		m[s[:4]] += i
	}
	return len(m)
}
func match(n int) int {
	re := regexp.MustCompile(`(\w+)@(\w+)\.(com|org)`)
	s := strings.Repeat("hello foo@bar.com and baz@qux.org or nothing at all here; ", n)
	return len(re.FindAllStringSubmatch(s, -1))
}

func pass(n int) int {
	c := make(chan int)
	d := make(chan int, 16)
	go func() {
		for i := 0; i < n; i++ {
			c <- i
		}
		close(c)
	}()
	go func() {
		for v := range c {
			d <- v * 2
		}
		close(d)
	}()
	s := 0
	for v := range d {
		s += v
	}
	return s
}

type node struct{ l, r *node }

func tree(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{tree(d - 1), tree(d - 1)}
}
func (n *node) count() int {
	if n.l == nil {
		return 1
	}
	return 1 + n.l.count() + n.r.count()
}
func multiply(n int) float64 {
	a := make([][]float64, n)
	b := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
		b[i] = make([]float64, n)
		for j := range a[i] {
			a[i][j] = float64(i*j%7)
			b[i][j] = float64((i + j) % 5)
		}
	}
	s := 0.0
	for i := 0; i < n; i++ {
		for j := 0; j < n; j++ {
			t := 0.0
			for k := 0; k < n; k++ {
				t += a[i][k] * b[k][j]
			}
			s += t
		}
	}
	return s
}
func main() {
	wanted, k := "", 1
	if len(os.Args) > 1 {
		wanted = os.Args[1]
	}
	if len(os.Args) > 2 {
		fmt.Sscan(os.Args[2], &k)
	}
	do := func(name string, work func() any) {
		if wanted == "" || wanted == name {
			fmt.Println(name, work())
		}
	}
	do("json", func() any { return encodeAndDecode(20000 * k) })
	do("deflate", func() any { return compress(2000000 * k) })
	do("sort", func() any { return sortAndCount(200000 * k) })
	do("regex", func() any { return match(10000 * k) })
	do("channels", func() any { return pass(200000 * k) })
	do("trees", func() any {
		s := 0
		for i := 0; i < 10*k; i++ {
			s += tree(16).count()
		}
		return s
	})
	do("matrices", func() any { return multiply(300 * k) })
	do("template", func() any {
		t := template.Must(template.New("x").Parse(`{{range .}}<li>{{.}}</li>{{if eq . 3}}!{{end}}{{end}}`))
		var b bytes.Buffer
		xs := make([]int, 20000*k)
		for i := range xs {
			xs[i] = i % 10
		}
		t.Execute(&b, xs)
		return b.Len()
	})
}
