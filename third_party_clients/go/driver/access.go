package driver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
)

// Access is how a client proves to a secured broker who it is. Its Protocol is empty where the broker is not.
type Access struct {
	Protocol    string `json:"protocol"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Authority   string `json:"authority"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// AccessFromEnvironment reads COMPATIBILITY_ACCESS.
func AccessFromEnvironment() Access {
	var found Access
	if text := os.Getenv("COMPATIBILITY_ACCESS"); text != "" {
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			panic(err)
		}
	}
	return found
}

// TLS is the configuration of every connection.
func (a Access) TLS() *tls.Config {
	authority, err := os.ReadFile(a.Authority)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if a.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(a.Certificate, a.Key)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
