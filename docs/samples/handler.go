// Reçoit les webhooks de Guichet. Aucune dépendance.
//
// WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique PORT=8080 go run handler.go
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const maxAge = 300 // secondes

var (
	inbox   = os.Getenv("INBOX")
	seconds = regexp.MustCompile(`^[0-9]{1,15}$`)
	uuid    = regexp.MustCompile(`^[0-9a-f-]{36}$`)
	// Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété.
	ranks   = map[string]int{"payment.succeeded": 1, "payment.failed": 1, "payment.refunded": 2}
	working sync.Mutex
)

type event struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	Data  struct {
		Reference string `json:"reference"`
	} `json:"data"`
}

func signed(secret, header string, body []byte, now int64) bool {
	var times, signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			times = append(times, value)
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if len(times) != 1 || !seconds.MatchString(times[0]) {
		return false
	}
	t, err := strconv.ParseInt(times[0], 10, 64)
	if err != nil || now-t > maxAge || t-now > maxAge { // Ni trop vieux, ni dans l'avenir.
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(times[0] + "."))
	mac.Write(body)
	expected := hex.EncodeToString(mac.Sum(nil))
	for _, given := range signatures {
		if hmac.Equal([]byte(expected), []byte(given)) { // En temps constant.
			return true
		}
	}
	return false
}

// receive rend le statut de la réponse. L'événement est sur le disque quand c'est 200.
func receive(body []byte, header string) int {
	var received event
	if !signed(os.Getenv("WEBHOOK_SECRET"), header, body, time.Now().Unix()) {
		return http.StatusBadRequest
	}
	if json.Unmarshal(body, &received) != nil || !uuid.MatchString(received.ID) {
		return http.StatusBadRequest
	}
	if err := store(body, filepath.Join(inbox, received.ID+".event")); err != nil {
		log.Print(err)
		return http.StatusInternalServerError // Guichet renverra l'événement.
	}
	return http.StatusOK
}

func store(body []byte, path string) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	part := filepath.Join(inbox, hex.EncodeToString(random)+".part")
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	defer file.Close()
	if _, err = file.Write(body); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	// Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
	if err = os.Link(part, path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// work traite ce qui est reçu et ne l'est pas encore. Il est lancé aussi au démarrage : un arrêt n'oublie rien.
func work() {
	working.Lock()
	defer working.Unlock()
	files, _ := filepath.Glob(filepath.Join(inbox, "*.event"))
	sort.Strings(files)
	for _, file := range files {
		done := strings.TrimSuffix(file, "event") + "done"
		if _, err := os.Stat(done); err == nil {
			continue
		}
		if err := apply(file); err != nil {
			log.Print(err)
			return
		}
		os.WriteFile(done, nil, 0o600)
	}
}

// apply : avec une base de données, la commande verrouillée, son état et l'id de l'événement dans une transaction.
func apply(file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var received event
	if err := json.Unmarshal(body, &received); err != nil {
		return err
	}
	rank, known := ranks[received.Event]
	if !known {
		return nil // Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
	}
	order := filepath.Join(inbox, received.Data.Reference+".order")
	state, _ := os.ReadFile(order)
	if ranks[string(state)] >= rank {
		return nil
	}
	if err := os.WriteFile(order+".part", []byte(received.Event), 0o600); err != nil {
		return err
	}
	if err := os.Rename(order+".part", order); err != nil {
		return err
	}
	actions, err := os.OpenFile(filepath.Join(inbox, "actions.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer actions.Close()
	_, err = fmt.Fprintf(actions, "%s %s\n", received.Data.Reference, received.Event) // Ici : livrer, annuler…
	return err
}

func main() {
	if strings.TrimSpace(os.Getenv("WEBHOOK_SECRET")) == "" { // Une clé vide, tout le monde peut la deviner.
		log.Fatal("Le secret du webhook est vide : la signature ne prouverait rien.")
	}
	work()
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body) // Brut, avant tout décodage.
		if err != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		response.WriteHeader(receive(body, request.Header.Get("X-Service-Signature")))
		go work() // La réponse n'attend pas.
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
