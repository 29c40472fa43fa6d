BEGIN TRANSACTION;
CREATE TABLE quiltwork_entries (
        seq INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        dataset TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT,
        body TEXT NOT NULL,
        hash TEXT NOT NULL
    , debit INTEGER);
INSERT INTO "quiltwork_entries" VALUES(1,'8803c1e8f24ba5a2d7eb080775795f0e','alone','create',NULL,'{"at":"2026-11-17T20:09:50+00:00","beliefs":{"grid":null,"initial":"stationary","schema":"quiltwork/belief/markov-chain","sources":[],"states":[0,1],"transition":[[0.9,0.1],[0.4,0.6]],"version":1},"budget":"2","length":200}','8b1c74d4b98b639618a7f8592c452a8c545ae876a994ddd394d9bcf0db23442f',NULL);
INSERT INTO "quiltwork_entries" VALUES(2,'580d4e54dab1aaa75bdb9b45fedc094e','alone','debit','k0','{"analyst":null,"at":"2026-11-17T20:09:50+00:00","charge":null,"key":"k0","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/20","quilts":null,"start":1,"stop":40}}','a8f22bf6fa1d6a8700748a45033a15200569cf8725dfcd59b8113369812e4f14',NULL);
INSERT INTO "quiltwork_entries" VALUES(3,'6ab9a2c2339ce4a475d274f25261be6c','alone','answer',NULL,'{"answer":"answer 0","at":"2026-11-17T20:09:50+00:00","debit":2}','8c15aa37c2a0596f9db7b51f1b4b351911df51c9a98f6896ad39cffe197afcf3',2);
INSERT INTO "quiltwork_entries" VALUES(4,'9a93d387e7c5565a9990b5f9c0a5afd6','alone','debit','k1','{"analyst":null,"at":"2026-11-17T20:10:05+00:00","charge":null,"key":"k1","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/20","quilts":null,"start":21,"stop":60}}','635c64eb4db80825c433ec19a44f7b403470b9a62b3e809d457160676d9a454e',NULL);
INSERT INTO "quiltwork_entries" VALUES(5,'7e22d17404b5be16ce8889b952c03806','alone','answer',NULL,'{"answer":"answer 1","at":"2026-11-17T20:10:05+00:00","debit":4}','3f0cd72a5e8218ddc6399e20791a45d02e8abb1306a4a55b678918e3bddde24a',4);
INSERT INTO "quiltwork_entries" VALUES(6,'c6aeef30c4c9bf1d160c525644ac2070','alone','debit','k2','{"analyst":null,"at":"2026-11-17T20:10:06+00:00","charge":null,"key":"k2","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/20","quilts":null,"start":41,"stop":80}}','b488b5281292252464badd8810804d260f0c623bd754206177b328f1dfe53d57',NULL);
INSERT INTO "quiltwork_entries" VALUES(7,'c9caef510bc55109533b598af9835ea0','alone','answer',NULL,'{"answer":"answer 2","at":"2026-11-17T20:10:06+00:00","debit":6}','482b60c42625ee6b180330d8279f114e5d2554ad0a31b25e97ebfe593aa9ded5',6);
INSERT INTO "quiltwork_entries" VALUES(8,'e4ecd1fecf00178b4b8ae20706d2da8b','alone','debit','k3','{"analyst":null,"at":"2026-11-17T20:10:06+00:00","charge":null,"key":"k3","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/20","quilts":null,"start":61,"stop":100}}','acdda8f5c80fdc811af539cfa43209dd43b3dc6759d09c72b9350d8956cbbfe8',NULL);
INSERT INTO "quiltwork_entries" VALUES(9,'af8bf66f095df9f47e02714da849b170','alone','answer',NULL,'{"answer":"answer 3","at":"2026-11-17T20:10:06+00:00","debit":8}','0a02a185c660da97f2250a46222c666139aba0ccdc8cf7ce85f357684ba137cf',8);
INSERT INTO "quiltwork_entries" VALUES(10,'14e9f9bf61737622ee73e3cd9a4a79ba','alone','debit','k4','{"analyst":null,"at":"2026-11-17T20:10:06+00:00","charge":null,"key":"k4","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/20","quilts":null,"start":81,"stop":120}}','1cd0ee1533c1b54ac9609a6a7a5cd8c1e7ec0a775c9d28f585263dc2db0ded6e',NULL);
INSERT INTO "quiltwork_entries" VALUES(11,'13bb4e1a7c37a65ca4301ac8af3ab01c','alone','answer',NULL,'{"answer":"answer 4","at":"2026-11-17T20:10:07+00:00","debit":10}','b4f4339625e0046c934146c63c5059000cf0919077306eea0c04a798c6779e23',10);
INSERT INTO "quiltwork_entries" VALUES(12,'2d6a77a71cee93127159bfbbedb63cb2','alone','extend',NULL,'{"at":"2026-11-17T20:10:07+00:00","length":300}','1125e88c6085a7fbaa23223f6dae04372f1aacd1d78db27a0654610c608f3d2d',NULL);
INSERT INTO "quiltwork_entries" VALUES(13,'9c0cc81da46247b708e85833f8b65477','alone','debit',NULL,'{"analyst":null,"at":"2026-11-17T20:10:07+00:00","charge":null,"key":null,"mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/10","quilts":null,"start":250,"stop":300}}','c53db4f5bde559114f40d52418a2bf4214c56d54aeeff2ee62f27cffc18bbff1',NULL);
INSERT INTO "quiltwork_entries" VALUES(14,'6b016b8818991d48f41e19d11356f5c8','shared','create',NULL,'{"at":"2026-11-17T20:10:07+00:00","beliefs":{"grid":null,"initial":"stationary","schema":"quiltwork/belief/markov-chain","sources":[],"states":[0,1],"transition":[[0.9,0.1],[0.4,0.6]],"version":1},"budget":"3","length":100}','22a64c1bf6f75c9da3a7f7db802f2a45ab366e414c29bdf53adede95edb8a6e4',NULL);
INSERT INTO "quiltwork_entries" VALUES(15,'fe365c058304d7c754b31a607a2d496e','shared','allot',NULL,'{"analyst":"ana","at":"2026-11-17T20:10:07+00:00","cap":"1/2","reserved":"0"}','c30a38e0b56852d8a2eb9c4b1ee9d7ef8f96eb2d32dcd1c3c3edc62117873f3c',NULL);
INSERT INTO "quiltwork_entries" VALUES(16,'cff1cd087cec08bf78d60eb89c24866f','shared','allot',NULL,'{"analyst":"ben","at":"2026-11-17T20:10:07+00:00","cap":null,"reserved":"1"}','f07fd7092ff06bfe7efd0902d9200175508844e662c9c7b57c05a889fe344be3',NULL);
INSERT INTO "quiltwork_entries" VALUES(17,'c7646a6a6bc64f05c90d92646fb1539b','shared','debit','anak0','{"analyst":"ana","at":"2026-11-17T20:10:07+00:00","charge":"2810137226602501/9007199254740992","key":"k0","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/10","quilts":null,"start":1,"stop":50}}','6d7530a240f2e86a4e8d6392187f9c3b8a640c2c60d271ba39c288e095ce01f1',NULL);
INSERT INTO "quiltwork_entries" VALUES(18,'6ed5dd81bf8a8daaa8ccc9f28ff21886','shared','answer',NULL,'{"answer":"hers","at":"2026-11-17T20:10:07+00:00","debit":17}','3d226c084e38b67f2532aafdfb4fef1bcc0ec712809d1ad3b564c16efc32b8aa',17);
INSERT INTO "quiltwork_entries" VALUES(19,'d59df6889e826c8dd820d2e14e7b298f','shared','debit','benk0','{"analyst":"ben","at":"2026-11-17T20:10:07+00:00","charge":"6019035881547533/9007199254740992","key":"k0","mechanism":"declared","request":{},"spending":{"composes_by":"levels","divergence":null,"epsilon":null,"label":"","once":"0","per_pair":"0","per_point":"1/5","quilts":null,"start":40,"stop":100}}','98ae58414745b477da211d4ba831caaef8813ba030eb272a475ae0131e7538b1',NULL);
INSERT INTO "quiltwork_entries" VALUES(20,'f6b70e948ddae6460bea26b2cb12a6ee','shared','answer',NULL,'{"answer":"his","at":"2026-11-17T20:10:07+00:00","debit":19}','a79a252c9120d96f27dfd3e876bada4eb91cbebc8d399d23c18ac80e39c21d35',19);
INSERT INTO "quiltwork_entries" VALUES(21,'beef4bbbb9516bb10a9be493a256c371','shared','refusal',NULL,'{"at":"2026-11-17T20:10:07+00:00","text":"This would raise the total of ''shared'' from 0.980235127 to 3.98572161, above the budget of 3; 2.01976487 is left. Nothing was recorded. Ask for more noise or a shorter window.","who":"ana"}','a1ff29a1ab1927f516e05a61f6b79fa599c470dac431b635af43561baa8ce89f',NULL);
INSERT INTO "quiltwork_entries" VALUES(22,'3572307b9c58ce13aee5efbb51bf1e08','closed','create',NULL,'{"at":"2026-11-17T20:10:07+00:00","beliefs":{"grid":null,"initial":"stationary","schema":"quiltwork/belief/markov-chain","sources":[],"states":[0,1],"transition":[[0.9,0.1],[0.4,0.6]],"version":1},"budget":"1","length":10}','834ad13b12db580c23073a363a4b2bf410be147492b01abe4f2e38d3c0c91b44',NULL);
INSERT INTO "quiltwork_entries" VALUES(23,'6462e3f2e9bf6e4095787846fb6f488e','closed','retire',NULL,'{"at":"2026-11-17T20:10:07+00:00","reason":"no longer used"}','7473fe17cfc2361fbc199aea66f1e6da713694fff9b73211e0afe580e89e5065',NULL);
CREATE TABLE quiltwork_ledger (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        version INTEGER NOT NULL,
        id TEXT NOT NULL,
        created TEXT NOT NULL
    );
INSERT INTO "quiltwork_ledger" VALUES(1,6,'f8c6e1709a6a358836ca2212f562eb57','2026-11-17T20:09:50+00:00');
CREATE TABLE quiltwork_levels (
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        time INTEGER NOT NULL,
        change TEXT NOT NULL,
        PRIMARY KEY (dataset, analyst, time)
    );
INSERT INTO "quiltwork_levels" VALUES('alone','',0,'20 bAQEAAAAVAQAAAA==');
INSERT INTO "quiltwork_levels" VALUES('alone','',1,'20 bJf8AAAA5/wAAAA==');
INSERT INTO "quiltwork_levels" VALUES('shared','ana',0,'10 bAQEAAAAz/wAAAA==');
INSERT INTO "quiltwork_levels" VALUES('shared','ben',0,'5 bKAEAAAA=');
INSERT INTO "quiltwork_levels" VALUES('shared','ben',1,'5 bJf8AAAA=');
CREATE TABLE quiltwork_totals (
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        body TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (dataset, analyst)
    );
INSERT INTO "quiltwork_totals" VALUES('alone','','{"all":"151/10","analysts":"0000000000000000000000000000000000000000000000000000000000000000","before":1,"count":5,"created":1,"denominator":20,"digest":"ed9c8b00d125f2a0fe41f8f0191353fa5c8ca29c5872f776f0947d325dbf51e5","found":{"exact":"2810137541800881/9007199254740992","node":60,"parts":[0.10000000000000019,0.10599397006335165,0.1059939700637355],"peaks":[],"quilt":[]},"hash":"c53db4f5bde559114f40d52418a2bf4214c56d54aeeff2ee62f27cffc18bbff1","latest":"levels","length":300,"most":"1/10","older":"[2, null, 1, 40, \"1/20\", \"0\", \"0\"]\n[4, null, 21, 60, \"1/20\", \"0\", \"0\"]\n[6, null, 41, 80, \"1/20\", \"0\", \"0\"]\n[8, null, 61, 100, \"1/20\", \"0\", \"0\"]\n[10, null, 81, 120, \"1/20\", \"0\", \"0\"]\n","others":"0","peak":"1/10","recent":"[13, null, 250, 300, \"1/10\", \"0\", \"0\"]\n","retired":null,"safe":"0","seq":13,"since":12}','ea3ca79949b9de13c4178f3bfc9fa5aaf61fcde50ef4edf69df535b954113214');
INSERT INTO "quiltwork_totals" VALUES('shared','','{"all":"86/5","analysts":"fff31830e457fd4636aed24f3b52f6126d626fa89824fb029a30f33ab9104b2b","before":0,"count":0,"created":14,"denominator":1,"digest":"0000000000000000000000000000000000000000000000000000000000000000","found":{"exact":"4414586554075017/4503599627370496","node":46,"parts":[0.30000000000000054,0.3426458127619776,0.3375893145449635],"peaks":[],"quilt":[]},"hash":"98ae58414745b477da211d4ba831caaef8813ba030eb272a475ae0131e7538b1","latest":null,"length":100,"most":"3/10","older":"","others":"0","peak":"0","recent":"[17, \"ana\", 1, 50, \"1/10\", \"0\", \"0\"]\n[19, \"ben\", 40, 100, \"1/5\", \"0\", \"0\"]\n","retired":null,"safe":"0","seq":19,"since":14}','97d98cca3d8d6650caca6ace58b182f917a95dc0e9b2a2a462fcd07523acb907');
INSERT INTO "quiltwork_totals" VALUES('shared','ana','{"cap":"1/2","charged":"2810137226602501/9007199254740992","count":1,"denominator":10,"digest":"364daf1f8a5be1ddea4c7a1eddfe0366211b9083142fed339d4305d7ba5a0d67","latest":"levels","others":"0","peak":"1/10","reserved":"0"}','');
INSERT INTO "quiltwork_totals" VALUES('shared','ben','{"cap":null,"charged":"6019035881547533/9007199254740992","count":1,"denominator":5,"digest":"6a895422f270a8a68259dc2f3292fe1f0d6d6a25d657c4598e1422cf286a60dd","latest":"levels","others":"0","peak":"1/5","reserved":"1"}','');
INSERT INTO "quiltwork_totals" VALUES('closed','','{"all":"0","analysts":"0000000000000000000000000000000000000000000000000000000000000000","before":0,"count":0,"created":22,"denominator":1,"digest":"0000000000000000000000000000000000000000000000000000000000000000","found":null,"hash":"7473fe17cfc2361fbc199aea66f1e6da713694fff9b73211e0afe580e89e5065","latest":null,"length":10,"most":"0","older":"","others":"0","peak":"0","recent":"","retired":"no longer used","safe":"0","seq":23,"since":22}','4900db30ca3409f97ac9b329a125836cdf97eb8624438e11879303dee5c8e2b1');
CREATE UNIQUE INDEX quiltwork_one_debit_per_key ON quiltwork_entries (dataset, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX quiltwork_one_answer_per_debit ON quiltwork_entries (debit) WHERE debit IS NOT NULL;
CREATE TRIGGER quiltwork_no_update BEFORE UPDATE ON quiltwork_entries BEGIN SELECT RAISE(ABORT, 'entries of the ledger are final'); END;
CREATE TRIGGER quiltwork_no_delete BEFORE DELETE ON quiltwork_entries BEGIN SELECT RAISE(ABORT, 'entries of the ledger are final'); END;
CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) WHERE kind NOT IN ('answer', 'refusal', 'read', 'act');
CREATE INDEX quiltwork_notes ON quiltwork_entries (seq) WHERE kind IN ('refusal', 'read', 'act');
COMMIT;
