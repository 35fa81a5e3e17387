// The library as an ES module: the same classes as by `require`, so `instanceof` holds where a program has both.

export * from "./index.js";
