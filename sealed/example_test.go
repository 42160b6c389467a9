package sealed_test

import (
	"crypto/rand"
	"fmt"
	"log"

	"github.com/falldue/falldue/sealed"
)

// A codec seals with its first key, and opens what was sealed with any of its keys.
func Example() {
	old, secret := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(old) // in a program, from where it keeps its secrets
	_, _ = rand.Read(secret)

	before, err := sealed.New(sealed.Key{ID: "2025", Secret: old})
	if err != nil {
		log.Panic(err)
	}
	after, err := sealed.New(sealed.Key{ID: "2026", Secret: secret}, sealed.Key{ID: "2025", Secret: old})
	if err != nil {
		log.Panic(err)
	}
	// falldue.New(db, falldue.Config{Codec: after}) does the rest.

	stored, err := before.Encode("pay", []byte(`{"card":"4111"}`))
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%.10s\n", stored)
	data, err := after.Decode("pay", stored)
	fmt.Println(string(data), err)
	_, err = before.Strict().Decode("pay", []byte(`{"card":"1234"}`))
	fmt.Println(err)
	// Output:
	// "fd1:2025:
	// {"card":"4111"} <nil>
	// sealed: data of kind "pay" is not sealed
}

// Unique tasks need one secret for their hashes while keys come and go.
func ExampleCodec_HashWith() {
	key, hashes := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(key) // in a program, from where it keeps its secrets
	_, _ = rand.Read(hashes)

	codec, err := sealed.New(sealed.Key{ID: "2026", Secret: key})
	if err != nil {
		log.Panic(err)
	}
	codec = codec.HashWith(hashes)
	fmt.Println(len(codec.Hash([]byte("what tasks are unique by"))))
	// Output:
	// 32
}
