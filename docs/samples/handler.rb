# Reçoit les webhooks de Guichet : une application Rack, sans dépendance (Rails : mount GuichetWebhooks.new, at: "/hook").
#
# WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique

require "fileutils"
require "json"
require "openssl"
require "securerandom"

class GuichetWebhooks
  MAX_AGE = 300 # secondes
  # Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété.
  RANKS = { "payment.succeeded" => 1, "payment.failed" => 1, "payment.refunded" => 2 }.freeze

  # Ce qu'un arrêt a interrompu est repris au démarrage.
  def initialize(inbox = ENV.fetch("INBOX"))
    @inbox = inbox
    @working = Mutex.new
    work
  end

  def call(env)
    body = env["rack.input"].read.b # Brut, avant tout décodage.
    status = receive(body, env["HTTP_X_SERVICE_SIGNATURE"])
    Thread.new { work } # La réponse n'attend pas.
    [status, {}, []]
  end

  private

  # Le statut de la réponse. L'événement est sur le disque quand c'est 200.
  def receive(body, header)
    return 400 unless signed?(ENV["WEBHOOK_SECRET"].to_s, header, body)
    id = JSON.parse(body)["id"]
    return 400 unless id.match?(/\A[0-9a-f-]{36}\z/)
    part = File.join(@inbox, "#{SecureRandom.uuid}.part")
    File.open(part, "wbx") { |file| file.write(body); file.fsync }
    begin
      # Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
      File.link(part, File.join(@inbox, "#{id}.event"))
    rescue Errno::EEXIST
    ensure
      File.unlink(part)
    end
    200
  end

  def signed?(secret, header, body, now = Time.now.to_i)
    # Une clé vide, tout le monde peut la deviner.
    raise ArgumentError, "Le secret du webhook est vide : la signature ne prouverait rien." if secret.strip.empty?
    return false unless header.is_a?(String)
    pairs = header.split(",").map { |part| part.strip.split("=", 2) }
    times = pairs.filter_map { |name, value| value if name == "t" }
    return false unless times.length == 1 && times[0].to_s.match?(/\A[0-9]{1,15}\z/)
    return false if (now - times[0].to_i).abs > MAX_AGE # Ni trop vieux, ni dans l'avenir.
    expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{times[0]}.".b + body)
    # secure_compare prend le même temps quel que soit l'endroit où les deux textes diffèrent.
    pairs.any? { |name, value| name == "v1" && OpenSSL.secure_compare(expected, value.to_s) }
  end

  # Traite ce qui est reçu et ne l'est pas encore.
  def work
    @working.synchronize do
      Dir.glob(File.join(@inbox, "*.event")).sort.each do |received|
        done = received.sub(/event\z/, "done")
        next if File.exist?(done)
        apply(JSON.parse(File.read(received)))
        FileUtils.touch(done)
      end
    end
  end

  # Avec une base de données : la commande verrouillée, son état et l'id de l'événement dans une transaction.
  def apply(event)
    rank = RANKS[event["event"]]
    return if rank.nil? # Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
    reference = event["data"]["reference"]
    order = File.join(@inbox, "#{reference}.order")
    state = File.exist?(order) ? File.read(order) : ""
    return if RANKS.fetch(state, 0) >= rank
    File.write("#{order}.part", event["event"])
    File.rename("#{order}.part", order)
    # Ici : livrer, annuler, ou reprendre la marchandise.
    File.write(File.join(@inbox, "actions.log"), "#{reference} #{event["event"]}\n", mode: "a")
  end
end
