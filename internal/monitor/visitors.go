package monitor

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// refuseForeignRequests refuses requests that were not meant for this server: a page in the user's browser may resolve its own
// name to the loopback interface, and could then read the answers as its own server's.
func (s *Server) refuseForeignRequests(next http.Handler) http.Handler {
	address, isTCP := s.listener.Addr().(*net.TCPAddr)
	local := isTCP && address.IP.IsLoopback()
	named, _, _ := net.SplitHostPort(s.address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		switch origin := r.Header.Get("Origin"); {
		case local && host != "" && !isLoopbackName(host) && !strings.EqualFold(host, named):
			http.Error(w, "not a name of this machine: name it with --listen", http.StatusMisdirectedRequest)
		case origin != "" && !isSameOrigin(origin, r.Host):
			http.Error(w, "pages of other servers get no answer", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopbackName reports whether every resolver resolves a host to this machine (RFC 6761).
func isLoopbackName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// isSameOrigin reports whether a page's origin is the server that it requests from.
func isSameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
