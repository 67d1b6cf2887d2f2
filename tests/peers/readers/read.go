// Reads bodies (one a line, in hexadecimal) and says what stands at each path, one JSON a line.
// Go finds the members of a struct without regard to case.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

type inner struct {
	K *any `json:"k"`
}

type body struct {
	All    *any  `json:"all"`
	Amount *any  `json:"amount"`
	ID     *any  `json:"id"`
	S      *any  `json:"s"`
	O      inner `json:"o"`
	L      []any `json:"l"`
}

type read struct {
	T string `json:"t"`
	V string `json:"v,omitempty"`
}

func tell(value *any) read {
	// A null leaves a pointer nil, as if the member were not there.
	if value == nil {
		return read{T: "null or absent"}
	}
	switch value := (*value).(type) {
	case nil:
		return read{T: "null"}
	case bool:
		return read{"bool", strconv.FormatBool(value)}
	case float64:
		return read{"num", strconv.FormatFloat(value, 'g', -1, 64) + "f"}
	case string:
		return read{"str", hex.EncodeToString([]byte(value))}
	default:
		return read{T: "other"}
	}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		raw, err := hex.DecodeString(line[:len(line)-1])
		if err != nil {
			panic(err)
		}
		var one body
		if json.Unmarshal(raw, &one) != nil {
			fmt.Fprintln(out, "null")
			continue
		}
		first := read{T: "absent"}
		if len(one.L) > 0 {
			first = tell(&one.L[0])
		}
		told, err := json.Marshal([]read{
			tell(one.All), tell(one.Amount), tell(one.ID), tell(one.S), tell(one.O.K), first,
		})
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(out, string(told))
	}
}
