// Measures job queues for Node.js on PostgreSQL: adds events in hundreds, then delivers them to a
// handler that only counts. Prints `<name> <published per second> <delivered per second>`.
//
//     node outbox.mjs graphile-worker|pg-boss URL EVENTS
import { createRequire } from "node:module";

// The packages are installed in the folder of the caller, not beside this file.
const require = createRequire(process.cwd() + "/");
const [name, url, count] = process.argv.slice(2);
const events = Number(count);
const publishSize = 100;
const payload = { seat: 12, text: "x".repeat(180) };

const perSecond = async (work) => {
  const start = process.hrtime.bigint();
  await work();
  return Math.round((events * 1e9) / Number(process.hrtime.bigint() - start));
};

async function graphileWorker() {
  const { Logger, makeWorkerUtils, runOnce } = require("graphile-worker");
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  const batch = Array.from({ length: publishSize }, () => ({ identifier: "count", payload }));
  const published = await perSecond(async () => {
    for (let i = 0; i < events; i += publishSize) await utils.addJobs(batch);
  });
  let delivered = 0;
  // As its pages advise for throughput: jobs are fetched and completed in batches.
  const worker = {
    connectionString: url,
    concurrentJobs: 24,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const rate = await perSecond(() =>
    runOnce({
      logger,
      preset: { worker },
      taskList: {
        count: () => {
          ++delivered;
        },
      },
    }),
  );
  await utils.release();
  return { published, rate, delivered };
}

async function pgBoss() {
  const PgBoss = require("pg-boss");
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("count");
  const batch = Array.from({ length: publishSize }, () => ({ name: "count", data: payload }));
  const published = await perSecond(async () => {
    for (let i = 0; i < events; i += publishSize) await boss.insert(batch);
  });
  let delivered = 0;
  const rate = await perSecond(async () => {
    for (;;) {
      const jobs = await boss.fetch("count", { batchSize: 500 });
      if (jobs.length === 0) break;
      delivered += jobs.length;
      await boss.complete("count", jobs.map((job) => job.id));
    }
  });
  await boss.clearStorage();
  await boss.stop({ graceful: false });
  return { published, rate, delivered };
}

const peers = { "graphile-worker": graphileWorker, "pg-boss": pgBoss };
const result = await peers[name]();
if (result.delivered < events) throw new Error(`${name} delivered ${result.delivered} of ${events}`);
console.log(name, result.published, result.rate);
process.exit(0);
