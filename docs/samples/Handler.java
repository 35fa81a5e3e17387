// Reçoit les webhooks de Guichet. Aucune dépendance (Java 17 ou plus récent).
//
// WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique PORT=8080 java Handler.java

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Handler {
    static final long MAX_AGE = 300; // secondes
    static final Path INBOX = Path.of(System.getenv("INBOX"));
    static final String SECRET = System.getenv().getOrDefault("WEBHOOK_SECRET", "");
    /** Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété. */
    static final Map<String, Integer> RANKS =
        Map.of("payment.succeeded", 1, "payment.failed", 1, "payment.refunded", 2);
    static final ExecutorService WORKER = Executors.newSingleThreadExecutor();

    static boolean signed(String secret, String header, byte[] body, long now) throws GeneralSecurityException {
        if (header == null) {
            return false; // L'en-tête manque : la requête ne vient pas de Guichet.
        }
        List<String> times = new ArrayList<>();
        List<String> signatures = new ArrayList<>();
        for (String part : header.split(",")) {
            String[] pair = part.strip().split("=", 2);
            if (pair.length == 2 && pair[0].equals("t")) {
                times.add(pair[1]);
            } else if (pair.length == 2 && pair[0].equals("v1")) {
                signatures.add(pair[1]);
            }
        }
        if (times.size() != 1 || !times.get(0).matches("[0-9]{1,15}")) {
            return false;
        }
        if (Math.abs(now - Long.parseLong(times.get(0))) > MAX_AGE) {
            return false; // Ni trop vieux, ni dans l'avenir.
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        mac.update((times.get(0) + ".").getBytes(StandardCharsets.UTF_8));
        byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
        // isEqual prend le même temps quel que soit l'endroit où les deux textes diffèrent.
        return signatures.stream().anyMatch(v1 -> MessageDigest.isEqual(expected, v1.getBytes(StandardCharsets.UTF_8)));
    }

    /** Le statut de la réponse. L'événement est sur le disque quand c'est 200. */
    static int receive(byte[] body, String header) throws IOException, GeneralSecurityException {
        if (!signed(SECRET, header, body, System.currentTimeMillis() / 1000)) {
            return 400;
        }
        String id = text(body, "id");
        if (!id.matches("[0-9a-f-]{36}")) {
            return 400;
        }
        Path part = INBOX.resolve(UUID.randomUUID() + ".part");
        Files.write(part, body, StandardOpenOption.CREATE_NEW, StandardOpenOption.SYNC);
        try {
            // Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
            Files.createLink(INBOX.resolve(id + ".event"), part);
        } catch (FileAlreadyExistsException repeated) {
            // Déjà reçu.
        } finally {
            Files.delete(part);
        }
        return 200;
    }

    /** Traite ce qui est reçu et ne l'est pas encore. Lancé aussi au démarrage : un arrêt n'oublie rien. */
    static void work() {
        try (var files = Files.list(INBOX)) {
            for (Path file : files.filter(each -> each.toString().endsWith(".event")).sorted().toList()) {
                Path done = Path.of(file.toString().replaceAll("event$", "done"));
                if (!Files.exists(done)) {
                    apply(Files.readAllBytes(file));
                    Files.createFile(done);
                }
            }
        } catch (IOException error) {
            error.printStackTrace();
        }
    }

    /** Avec une base de données : la commande verrouillée, son état et l'id de l'événement dans une transaction. */
    static void apply(byte[] body) throws IOException {
        String event = text(body, "event");
        int rank = RANKS.getOrDefault(event, 0);
        if (rank == 0) {
            return; // Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
        }
        String reference = text(body, "reference");
        Path order = INBOX.resolve(reference + ".order");
        String state = Files.exists(order) ? Files.readString(order) : "";
        if (RANKS.getOrDefault(state, 0) >= rank) {
            return;
        }
        Path part = INBOX.resolve(reference + ".order.part");
        Files.writeString(part, event);
        Files.move(part, order, StandardCopyOption.ATOMIC_MOVE);
        Files.writeString(INBOX.resolve("actions.log"), reference + " " + event + "\n", // Ici : livrer, annuler…
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /**
     * Le premier texte de ce nom. Java n'a pas de lecteur de JSON : prenez celui de votre projet (Jackson, Gson). Ceci suffit
     * pour des noms que suivent seulement des lettres, des chiffres et des tirets, avant tout texte que vous choisissez.
     */
    static String text(byte[] body, String name) {
        String json = new String(body, StandardCharsets.UTF_8);
        Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([a-z0-9._-]*)\"").matcher(json);
        return found.find() ? found.group(1) : "";
    }

    static void answer(HttpExchange exchange) throws IOException {
        int status = 500; // Guichet renverra l'événement.
        try {
            byte[] body = exchange.getRequestBody().readAllBytes(); // Brut, avant tout décodage.
            status = receive(body, exchange.getRequestHeaders().getFirst("X-Service-Signature"));
        } catch (IOException | GeneralSecurityException error) {
            error.printStackTrace();
        }
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
        WORKER.execute(Handler::work); // La réponse n'attend pas.
    }

    public static void main(String[] arguments) throws IOException {
        if (SECRET.isBlank()) { // Une clé vide, tout le monde peut la deviner.
            throw new IllegalStateException("Le secret du webhook est vide : la signature ne prouverait rien.");
        }
        work();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
        server.createContext("/", Handler::answer);
        server.start();
    }
}
