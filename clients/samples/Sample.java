// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client Java d'openapi-generator (library=native).
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… java Sample commande-1042

import guichet.client.ApiClient;
import guichet.client.api.PaiementsApi;
import guichet.client.api.RemboursementsApi;
import guichet.client.api.SessionsDePaiementApi;
import guichet.client.model.CheckoutSession;
import guichet.client.model.CheckoutSessionBody;
import guichet.client.model.Payment;
import guichet.client.model.PaymentBody;
import guichet.client.model.Refund;
import guichet.client.model.RefundBody;
import java.net.http.HttpClient;
import java.util.List;

public class Sample {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        // Sans TLS, le client de Java demanderait à passer à HTTP/2 : inutile en production, en HTTPS.
        client.setHttpClientBuilder(HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1));
        client.updateBaseUri(System.getenv("GUICHET"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("CLE")));
        PaiementsApi payments = new PaiementsApi(client);

        PaymentBody body = new PaymentBody()
            .amount(5000.0).operator("mtn").phoneNumber("2290197000000").externalId(arguments[0]);
        Payment created = payments.createPayment(body, null).getData();

        Payment payment = payments.readPayment(created.getReference().toString()).getData();
        if (payment.getStatus() != Payment.StatusEnum.SUCCEEDED) {
            throw new IllegalStateException("encore " + payment.getStatus() + " : attendez le webhook");
        }

        Refund refund = new RemboursementsApi(client)
            .createRefund(
                payment.getReference().toString(),
                "refund-" + payment.getReference(),
                new RefundBody().reason("Article indisponible"))
            .getData();

        // Tout parcourir : `after` nomme le dernier élément reçu.
        String after = null;
        for (boolean full = true; full; ) {
            List<Payment> page =
                payments.listPayments(null, null, null, null, null, null, 2, null, "asc", after).getData();
            full = page.size() == 2;
            after = full ? page.get(1).getReference().toString() : null;
        }

        // La page où le client choisit son opérateur : envoyez-le à cette adresse.
        CheckoutSessionBody order = new CheckoutSessionBody()
            .amount(5000.0).description("Commande 1042").externalId("page-" + arguments[0]);
        CheckoutSession session = new SessionsDePaiementApi(client).createSession(order, null).getData();
        System.out.println(session.getStatus() + " " + session.getUrl());
        System.out.println(payment.getStatus() + " " + payment.getTotalAmount() + " " + refund.getStatus());
    }
}
