// What test_fedapay_node.py has the npm package fedapay do: node fedapay_client.js BASE KEY CALL [JSON]
// Prints the answer as JSON, or {"error": the HTTP status}.
const { FedaPay, Transaction, Payout, Balance, Currency, Webhook } = require("fedapay");

const calls = {
  create: (given) => Transaction.create(given),
  read: async ({ id }) => {
    const found = await Transaction.retrieve(id);
    return { status: found.status, reference: found.merchant_reference, paid: found.wasPaid() };
  },
  push: async ({ id, mode, phone }) => (await Transaction.retrieve(id)).sendNow(mode, { phone_number: phone }),
  all: async (query) => {
    const found = await Transaction.all(query);
    return { ids: found.transactions.map((each) => each.id), meta: found.meta };
  },
  pay: async (given) => (await Payout.create(given)).sendNow(),
  payout: ({ id }) => Payout.retrieve(id),
  balances: async () => (await Balance.all()).balances,
  currencies: async () => (await Currency.all()).currencies,
  event: async ({ body, signature, secret }) => Webhook.constructEvent(body, signature, secret),
};

const [base, key, call, given] = process.argv.slice(2);
FedaPay.setApiBase(base);
FedaPay.setApiKey(key);
calls[call](JSON.parse(given || "{}"))
  .then((found) => console.log(JSON.stringify(found)))
  .catch((error) => console.log(JSON.stringify({ error: error.httpStatus || error.message })));
