// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client Go d'openapi-generator.
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… ./sample commande-1042
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	guichet "example.com/guichet"
)

func main() {
	configuration := guichet.NewConfiguration()
	configuration.Servers = guichet.ServerConfigurations{{URL: os.Getenv("GUICHET")}}
	client := guichet.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), guichet.ContextAccessToken, os.Getenv("CLE"))

	body := guichet.NewPaymentBody(5000)
	body.SetOperator("mtn")
	body.SetPhoneNumber("2290197000000")
	body.SetExternalId(os.Args[1])
	created, _, err := client.PaiementsAPI.CreatePayment(ctx).PaymentBody(*body).Execute()
	if err != nil {
		log.Fatal(err)
	}

	read, _, err := client.PaiementsAPI.ReadPayment(ctx, created.Data.Reference).Execute()
	if err != nil {
		log.Fatal(err)
	}
	payment := read.Data
	if payment.Status != "succeeded" {
		log.Fatalf("encore %s : attendez le webhook", payment.Status)
	}

	reason := guichet.NewRefundBody()
	reason.SetReason("Article indisponible")
	refunded, _, err := client.RemboursementsAPI.CreateRefund(ctx, payment.Reference).
		IdempotencyKey("refund-" + payment.Reference).RefundBody(*reason).Execute()
	if err != nil {
		log.Fatal(err)
	}

	// Tout parcourir : `after` nomme le dernier élément reçu.
	listing := client.PaiementsAPI.ListPayments(ctx).PerPage(2).Order("asc")
	for {
		page, _, err := listing.Execute()
		if err != nil {
			log.Fatal(err)
		}
		if len(page.Data) < 2 {
			break
		}
		listing = listing.After(page.Data[1].Reference)
	}

	// La page où le client choisit son opérateur : envoyez-le à cette adresse.
	order := guichet.NewCheckoutSessionBody(5000, "Commande 1042")
	order.SetExternalId("page-" + os.Args[1])
	session, _, err := client.SessionsDePaiementAPI.CreateSession(ctx).CheckoutSessionBody(*order).Execute()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Data.Status, session.Data.Url)
	fmt.Println(payment.Status, payment.TotalAmount, refunded.Data.Status)
}
