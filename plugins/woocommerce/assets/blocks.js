// The payment method of the block checkout. Plain script: nothing is built, so this is what runs.
(function (registry, settings, element, entities, i18n) {
  const given = settings.getSetting('guichet_data', {});
  const title = entities.decodeEntities(given.title || '') || i18n.__('Mobile Money or card', 'guichet-woocommerce');
  const description = entities.decodeEntities(given.description || '');
  const content = element.createElement('p', null, description);
  registry.registerPaymentMethod({
    name: 'guichet',
    label: element.createElement('span', null, title),
    content: content,
    edit: content,
    ariaLabel: title,
    placeOrderButtonLabel: i18n.__('Continue to payment', 'guichet-woocommerce'),
    canMakePayment: () => true,
    supports: { features: given.supports || ['products'] },
  });
})(window.wc.wcBlocksRegistry, window.wc.wcSettings, window.wp.element, window.wp.htmlEntities, window.wp.i18n);
