(* A Markov chain of T time points, and the sweep's theorem about it. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Tuples.
Variables (R : realFieldType) (S : finType).
Implicit Types (F : seq S -> R).

Lemma big_tuple_cons n F :
  \sum_(s : n.+1.-tuple S) F s = \sum_z \sum_(r : n.-tuple S) F (z :: r).
Proof.
rewrite pair_big /=.
rewrite (reindex (fun p : S * n.-tuple S => [tuple of p.1 :: p.2])) //=.
exists (fun s : n.+1.-tuple S => (thead s, [tuple of behead s])) => [[z r] _|s _].
  by congr (_, _); apply: val_inj.
by rewrite -tuple_eta.
Qed.

Lemma big_tuple0 F : \sum_(s : 0.-tuple S) F s = F [::].
Proof.
rewrite (big_pred1 [tuple]) // => s; rewrite [s]tuple0.
by apply/esym/eqP/val_inj.
Qed.

Lemma big_tuple_cat i n F :
  \sum_(s : (i + n).-tuple S) F s
    = \sum_(l : i.-tuple S) \sum_(r : n.-tuple S) F (l ++ r).
Proof.
elim: i F => [|i IH] F; first by rewrite (big_tuple0 (fun l => \sum_(r : n.-tuple S) F (l ++ r))).
rewrite (big_tuple_cons _ (fun l => \sum_(r : n.-tuple S) F (l ++ r))).
rewrite [LHS](big_tuple_cons _ F); apply: eq_bigr => z _.
exact: (IH (fun s => F (z :: s))).
Qed.

Lemma big_tuple_split T i n F : T = (i + n)%N ->
  \sum_(s : T.-tuple S) F s
    = \sum_(l : i.-tuple S) \sum_(r : n.-tuple S) F (l ++ r).
Proof. by move=> ->; exact: big_tuple_cat. Qed.

Lemma big_tuple_rev n F :
  \sum_(l : n.-tuple S) F l = \sum_(l : n.-tuple S) F (rev l).
Proof.
rewrite (reindex (fun l : n.-tuple S => [tuple of rev l])) //=.
by exists (fun l : n.-tuple S => [tuple of rev l]) => l _; apply: val_inj; rewrite /= revK.
Qed.

End Tuples.

Section Sweep.
Variables (R : realFieldType) (S : finType) (m : S -> R) (P : nat -> S -> S -> R).
Hypothesis ch : chain m P.
Variables (T i k : nat).
Hypothesis Tik : T = (i + k.+1)%N.

Let right j := beyond (kernel_right P T) (fun=> 1 : R) j.
Let left j := beyond (kernel_left P) m j.

Lemma right_paths j x h : (j < T)%N ->
  right j x h = \sum_(r : j.-tuple S) path P (T - j.+1) x r * h r.
Proof.
rewrite /right; elim: j x h => [|j IH] x h jT.
  by rewrite (big_tuple0 (fun r => path P (T - 1) x r * h r)) /= !mul1r.
rewrite (big_tuple_cons _ (fun r => path P (T - j.+2) x r * h r)) /=.
apply: eq_bigr => z _; rewrite IH; last exact: ltnW.
by rewrite mulr_sumr; apply: eq_bigr => r _; rewrite mulrA subnSK.
Qed.

Fixpoint past (l : seq S) (x : S) : R :=
  if l is z :: l' then past l' z * P (size l') z x else m x.

Lemma left_paths j x h : left j x h = \sum_(l : j.-tuple S) past l x * h l.
Proof.
rewrite /left; elim: j x h => [|j IH] x h.
  by rewrite (big_tuple0 (fun r => past r x * h r)).
rewrite (big_tuple_cons _ (fun r => past r x * h r)) /=.
apply: eq_bigr => z _; rewrite IH mulr_sumr; apply: eq_bigr => l _.
by rewrite size_tuple /kernel_left mulrCA mulrA.
Qed.

Lemma law_split l x r : law m P (rev l ++ x :: r) = past l x * path P (size l) x r.
Proof.
elim: l x r => [|z l IH] x r //=.
by rewrite rev_cons cat_rcons IH /= mulrA.
Qed.

Lemma partial_mean_both g x :
  partial_mean m P T i g x = both (kernel_left P) m (kernel_right P T) (fun=> 1) i k x x
    (fun l r => g (rev l ++ x :: r)).
Proof.
rewrite /both -/(left i x _) left_paths /partial_mean.
pose G s : R := if nth x s i == x then law m P s * g s else 0.
rewrite big_mkcond /= (big_tuple_split G Tik).
rewrite (big_tuple_rev _ (fun l => \sum_(r : k.+1.-tuple S) G (l ++ r))).
apply: eq_bigr => l _; rewrite (big_tuple_cons _ (fun r => G (rev l ++ r))).
rewrite (bigD1 x) //= [X in _ + X]big1 ?addr0 => [|z zx]; last first.
  by rewrite big1 // => r _; rewrite /G nth_cat size_rev size_tuple ltnn subnn /= (negbTE zx).
rewrite -/(right k x _) right_paths ?mulr_sumr; last by rewrite Tik leq_addl.
apply: eq_bigr => r _; rewrite /G nth_cat size_rev size_tuple ltnn subnn /= eqxx.
by rewrite law_split size_tuple mulrA Tik addnK.
Qed.

Variables (levels : seq (window R)).
Hypothesis ok : all (@valid R) levels.
Variable occurs : nat -> pred S.
Hypothesis start_occurs : forall x, ~~ occurs 0 x -> m x = 0.
Hypothesis next_occurs :
  forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0.

Lemma support_right : support (kernel_right P T) (fun=> 1 : R) (fun=> predT).
Proof. by split=> //; [move=> *; exact: matrix_ge0 ch _ _ _ | move=> _; exact: ler01]. Qed.

Lemma support_left : support (kernel_left P) m occurs.
Proof.
split=> //; first by move=> *; exact: matrix_ge0 ch _ _ _.
  exact: start_ge0 ch.
by move=> j x no z occ; rewrite /kernel_left (next_occurs occ).
Qed.

Variables (FR : nat -> S -> S -> R) (finR : nat -> rel S).
Hypothesis recR : recursion (kernel_right P T) (fun=> 1)
  (fun j _ _ => begins levels T j) (begins levels T) (fun=> predT) FR finR.
Variables (FL : nat -> S -> S -> R) (finL : nat -> rel S).
Hypothesis recL : recursion (kernel_left P) m
  (fun j _ _ => backward levels j) (backward levels) occurs FL finL.

Theorem sweep g x x' :
  within T levels g ->
  occurs i x -> occurs i x' -> x != x' -> finL i x x' -> finR k x x' ->
  partial_mean m P T i g x
    <= own levels i * FL i x x' * FR k x x' * partial_mean m P T i g x'.
Proof.
move=> [g0 gl] occ occ' neq fl fr; rewrite !partial_mean_both.
have size_both y l r : size l = i -> size r = k -> size (rev l ++ y :: r) = T.
  by move=> sl sr; rewrite size_cat size_rev /= sl sr.
have [FL0 _] := recL occ occ' neq fl.
have [FR0 _] := recR (erefl : predT x) (erefl : predT x') neq fr.
apply: (two_sides support_left (@charges_left R S levels ok) support_right (@charges_right R S levels ok T)) => //.
- exact: prod_ge0.
- by move=> l r sl sr; rewrite g0 ?size_both.
- move=> l l' r r' sl sl' sr sr'.
  apply: le_trans (gl _ (rev l' ++ x' :: r') _ _) _; rewrite ?size_both //.
  by apply: ler_wpmul2r; rewrite ?g0 ?size_both //; apply: (@paid_across _ _ _ ok T i k).
- move=> h h0 hD; exact: (side_bound support_left (@charges_left R S levels ok) recL).
- move=> h h0 hD; exact: (side_bound support_right (@charges_right R S levels ok T) recR).
Qed.

End Sweep.
