(* The holdout by counting: how many questions there can be, and the union bound. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.

(* The hockey-stick identity. *)
Lemma hockey_stick m b : \sum_(i < m) 'C(i, b) = 'C(m, b.+1).
Proof.
elim: m => [|m IH]; first by rewrite big_ord0 bin0n.
by rewrite big_ord_recr /= IH binS addnC.
Qed.

Lemma big_option (G : finType) (F : option G -> nat) :
  \sum_o F o = F None + \sum_v F (Some v).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap Some id) /=; last by case.
by apply: eq_bigl => v; rewrite eqxx.
Qed.

Lemma sum_tuple (A : finType) i (F : seq A -> nat) :
  \sum_(t : i.+1.-tuple A) F t = \sum_z \sum_(r : i.-tuple A) F (z :: r).
Proof.
rewrite pair_big /=.
rewrite (reindex (fun p : A * i.-tuple A => [tuple of p.1 :: p.2])) //=.
exists (fun s : i.+1.-tuple A => (thead s, [tuple of behead s])) => [[z r] _|s _].
  by congr (_, _); apply: val_inj.
by rewrite -tuple_eta.
Qed.

Section Transcripts.
Variable G : finType.

Lemma count_rounds i b :
  \sum_(t : i.-tuple (option G)) (rounds t == b) = 'C(i, b) * #|G| ^ b.
Proof.
elim: i b => [|i IH] b.
  rewrite (big_pred1 [tuple]) => [|s]; last by rewrite [s]tuple0; apply/esym/eqP/val_inj.
  by case: b => [|b]; rewrite ?bin0n.
rewrite (sum_tuple _ (fun t => (rounds t == b) : nat)) big_option /= IH.
case: b => [|b]; last first.
  rewrite (eq_bigr (fun=> 'C(i, b) * #|G| ^ b)) => [|v _]; last first.
    by rewrite -IH; apply: eq_bigr => r _; rewrite add1n eqSS.
  by rewrite sum_nat_const binS mulnDl; congr (_ + _); rewrite expnS mulnCA.
by rewrite [X in _ + X]big1 ?addn0 ?bin0 // => v _; rewrite big1.
Qed.

Lemma count_below i B :
  \sum_(t : i.-tuple (option G)) (rounds t < B) = \sum_(b < B) 'C(i, b) * #|G| ^ b.
Proof.
rewrite -(eq_bigr _ (fun (b : 'I_B) _ => count_rounds i b)) exchange_big /=.
apply: eq_bigr => t _; case: ltnP => [lt|ge].
  rewrite (bigD1 (Ordinal lt)) //= eqxx big1 ?addn0 // => b ne.
  by rewrite eq_sym -[rounds t]/(val (Ordinal lt)) (inj_eq val_inj) (negbTE ne).
rewrite big1 // => b _; case: eqP => // e.
by have := ltn_ord b; rewrite -e ltnNge ge.
Qed.

(* docs/theory/counting.md: the number of questions that can come up. *)
Theorem tree_size m B :
  \sum_(i < m) \sum_(t : i.-tuple (option G)) (rounds t < B)
    = \sum_(b < B) 'C(m, b.+1) * #|G| ^ b.
Proof.
rewrite (eq_bigr _ (fun (i : 'I_m) _ => count_below i B)) exchange_big /=.
by apply: eq_bigr => b _; rewrite -big_distrl hockey_stick.
Qed.

End Transcripts.

Local Open Scope ring_scope.

Section Union.
Variables (R : realFieldType) (G Omega : finType) (mu : Omega -> R) (m B : nat) (delta : R).
Hypothesis mu0 : forall w, 0 <= mu w.

(* The question that an analyst with fixed coins asks after these answers, and whether it fails
   on the holdout w; the answers before the i-th question. *)
Variables (bad : seq (option G) -> pred Omega).
Variables (answers : Omega -> forall i, i.-tuple (option G)).
Hypothesis each : forall t, \sum_(w | bad t w) mu w <= delta.

Theorem union_bound :
  \sum_(w | [exists i : 'I_m, (rounds (answers w i) < B)%N && bad (answers w i) w]) mu w
    <= (\sum_(b < B) 'C(m, b.+1) * #|G| ^ b)%N%:R * delta.
Proof.
rewrite -tree_size natr_sum mulr_suml.
apply: (@le_trans _ _ (\sum_(i < m) \sum_(t : i.-tuple (option G) | (rounds t < B)%N)
    \sum_(w | bad t w) mu w)); last first.
  apply: ler_sum => i _; rewrite natr_sum mulr_suml big_mkcond; apply: ler_sum => t _.
  by case: ifP => _; rewrite ?mul1r ?mul0r.
have -> : \sum_(i < m) \sum_(t : i.-tuple (option G) | (rounds t < B)%N) \sum_(w | bad t w) mu w
    = \sum_w \sum_(i < m) \sum_(t : i.-tuple (option G) | (rounds t < B)%N)
        (if bad t w then mu w else 0).
  rewrite [RHS]exchange_big /=; apply: eq_bigr => i _; rewrite [RHS]exchange_big /=.
  by apply: eq_bigr => t _; exact: big_mkcond.
rewrite big_mkcond; apply: ler_sum => w _.
have pos i : 0 <= \sum_(t : i.-tuple (option G) | (rounds t < B)%N) (if bad t w then mu w else 0).
  by apply: sumr_ge0 => t _; case: ifP.
case: existsP => [[i /andP[ri bi]]|_]; last by apply: sumr_ge0 => i _; exact: pos.
rewrite (bigD1 i) //=; apply: ler_paddr; first by apply: sumr_ge0 => j _; exact: pos.
rewrite (bigD1 (answers w i)) //= bi ler_addl; apply: sumr_ge0 => t _; by case: ifP.
Qed.

End Union.
