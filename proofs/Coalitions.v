(* m-privacy: which coalitions have to be looked at. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Coalitions.
Variables (P Rec : finType) (owner : Rec -> P) (group : {set Rec}).
Implicit Types (I J : {set P}) (T U : {set Rec}) (C : pred {set Rec}).

Local Notation known := (known owner group).
Local Notation left_by := (left_by owner group).
Local Notation withstands := (withstands owner group).
Local Notation monotone := (monotone group).
Local Notation size_of := (size_of owner group).

Lemma left_by_anti I J : I \subset J -> left_by J \subset left_by I.
Proof.
move=> IJ; apply: setDS; apply/subsetP => r; rewrite !inE => /andP[-> /=].
exact: (subsetP IJ).
Qed.

Lemma left_by_group I : left_by I \subset group. Proof. exact: subsetDl. Qed.

(* Observation 2.1. *)
Lemma fewer m C : withstands m.+1 C -> withstands m C.
Proof. by move=> w I T Im; apply: w; exact: leqW. Qed.

(* A coalition can be filled up. *)
Lemma fill I m : #|I| <= m -> m <= #|P| -> exists2 J : {set P}, I \subset J & #|J| = m.
Proof.
elim: m => [|m IH]; first by rewrite leqn0 => /eqP I0 _; exists I => //.
rewrite leq_eqVlt => /orP[/eqP Im|lt] mP; first by exists I.
have [J IJ Jm] := IH lt (ltnW mP).
have [x xJ] : exists x, x \notin J.
  apply/existsP; rewrite -negb_forall; apply/negP => /forallP all.
  have JT : J = setT by apply/setP => x; rewrite inE; exact: all.
  by rewrite -cardsT -JT Jm ltnn in mP.
exists (x |: J); first exact: subset_trans IJ (subsetUr _ _).
by rewrite cardsU1 xJ Jm.
Qed.

(* Observation 2.3: of a monotone constraint only whole coalitions of the largest size. *)
Theorem prune m C : monotone C -> m <= #|P| ->
  (withstands m C <-> forall I, #|I| = m -> C (left_by I)).
Proof.
move=> mono mP; split=> [w I Im|all I T Im sub TG].
  by apply: (w I) => //; [rewrite Im | exact: left_by_group].
have [J IJ Jm] := fill Im mP.
apply: (mono _ _ sub TG); apply: (mono _ _ (left_by_anti IJ) (left_by_group I)); exact: all.
Qed.

(* Observation 2.2: a conjunction is breached where one of its parts is. *)
Theorem conjunction m C C' :
  withstands m (fun T => C T && C' T) <-> withstands m C /\ withstands m C'.
Proof.
split=> [w|[w w'] I T Im sub TG]; last by rewrite (w I) // (w' I).
by split=> I T Im sub TG; have /andP[] := w I T Im sub TG.
Qed.

(* k-anonymity: the largest providers leave the fewest records. *)
Definition records I : nat := #|known I|.
Definition anonymous k : pred {set Rec} := fun T => k <= #|T|.

Lemma anonymous_monotone k : monotone (anonymous k).
Proof. by move=> T U TU _ kT; apply: leq_trans kT (subset_leq_card TU). Qed.

Lemma left_by_card I : #|left_by I| = #|group| - records I.
Proof.
by rewrite cardsD (setIidPr _) //; apply/subsetP => r; rewrite inE => /andP[].
Qed.

(* `largest` is any coalition of m providers that holds at least as much as every other. *)
Theorem k_anonymity k m (largest : {set P}) : m <= #|P| -> #|largest| = m ->
    (forall I, #|I| = m -> records I <= records largest) ->
  (withstands m (anonymous k) <-> k <= #|group| - records largest).
Proof.
move=> mP Lm most; rewrite (prune (@anonymous_monotone k) mP); split=> [all|le I Im].
  by have := all _ Lm; rewrite /anonymous left_by_card.
by rewrite /anonymous left_by_card (leq_trans le) // leq_sub2l // most.
Qed.

(* The providers with the most records are such a coalition. *)
Lemma records_sum I : records I = \sum_(p in I) size_of p.
Proof.
rewrite /records /known -sum1_card (partition_big owner (mem I)) => [|r]; last first.
  by rewrite inE => /andP[].
apply: eq_bigr => p /= pI; rewrite /size_of -sum1_card; apply: eq_bigl => r.
rewrite !inE; case: eqP => [->|_]; last by rewrite !andbF.
by rewrite pI !andbT.
Qed.

Theorem largest_providers m (largest : {set P}) : #|largest| = m ->
    (forall p q, p \in largest -> q \notin largest -> size_of q <= size_of p) ->
  forall I, #|I| = m -> records I <= records largest.
Proof.
move=> Lm above I Im; rewrite !records_sum.
rewrite (bigID (mem largest)) /= [X in _ <= X](bigID (mem I)) /=.
rewrite [X in X + _ <= _](eq_bigl (mem (I :&: largest))) => [|p]; last by rewrite !inE.
rewrite [X in _ <= X + _](eq_bigl (mem (I :&: largest))) => [|p]; last first.
  by rewrite !inE andbC.
rewrite leq_add2l.
rewrite [X in X <= _](eq_bigl (mem (I :\: largest))) => [|p]; last by rewrite !inE andbC.
rewrite [X in _ <= X](eq_bigl (mem (largest :\: I))) => [|p]; last by rewrite !inE andbC.
have cards : #|I :\: largest| = #|largest :\: I|.
  by apply: (@addnI #|I :&: largest|); rewrite cardsID setIC cardsID Im Lm.
have [p0 p0L|none] := pickP (mem (largest :\: I)); last first.
  rewrite [X in X <= _]big_pred0 // => p; apply/negbTE/negP => pI.
  have : 0 < #|I :\: largest| by apply/card_gt0P; exists p.
  by rewrite cards card_gt0 => /set0Pn[q]; have := none q => /= ->.
(* the least of those that are only in `largest` *)
pose p1 := [arg min_(p < p0 in largest :\: I) size_of p].
have [p1L least] : p1 \in largest :\: I /\
    forall p, p \in largest :\: I -> size_of p1 <= size_of p.
  by rewrite /p1; case: arg_minnP => //.
apply: (@leq_trans (\sum_(p in I :\: largest) size_of p1)).
  by apply: leq_sum => q /setDP[_ qL]; apply: above qL; case/setDP: p1L.
rewrite sum_nat_const cards -sum_nat_const; apply: leq_sum => p; exact: least.
Qed.

End Coalitions.
