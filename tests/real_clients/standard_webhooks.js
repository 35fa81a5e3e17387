// What npm standardwebhooks and npm svix say of a webhook: { headers, body, secret } comes on standard input.
const { Webhook: Standard } = require("standardwebhooks");
const { Webhook: Svix } = require("svix");

const { headers, body, secret } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const accepted = [Standard, Svix].map((Webhook) => {
  try {
    new Webhook(secret).verify(body, headers); // Which throws where it does not accept; svix returns nothing.
    return true;
  } catch {
    return false;
  }
});
console.log(JSON.stringify(accepted));
